//! A libnvrtc that is made up. It knows the programs of the tests: an `#error` is one, with the line after the last
//! `#line`; a cast of double leaves that of float undefined; else the PTX walks with the instruction of the first `asm`.
#![allow(non_snake_case)]

use std::ffi::{CStr, CString, c_char, c_int};

pub struct Program {
    source: String,
    name: String,
    result: CString,
}

unsafe fn text(place: *const c_char) -> String {
    unsafe { CStr::from_ptr(place) }.to_str().unwrap().to_owned()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcCreateProgram(
    program: *mut *mut Program,
    source: *const c_char,
    name: *const c_char,
    _headers: c_int,
    _sources: *const *const c_char,
    _names: *const *const c_char,
) -> c_int {
    let name = if name.is_null() { "default_program".into() } else { unsafe { text(name) } };
    let new = Program { source: unsafe { text(source) }, name, result: CString::default() };
    unsafe { program.write(Box::into_raw(Box::new(new))) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcCompileProgram(
    program: *mut Program,
    count: c_int,
    options: *const *const c_char,
) -> c_int {
    let program = unsafe { &mut *program };
    let options: Vec<String> = (0..count as usize).map(|at| unsafe { text(*options.add(at)) }).collect();
    let target = options.iter().find_map(|option| option.strip_prefix("--gpu-architecture=compute_")).unwrap();
    let (walk, own) = program.source.split_once("#line 1\n").unwrap();
    assert!(walk.starts_with("__device__ unsigned cast(float x);\n") && walk.contains("__global__ void walk("));
    let error = own.lines().enumerate().find(|(_, line)| line.starts_with("#error"));
    let (code, result) = match error {
        Some((at, line)) => {
            let log = format!("{}({}): error: {line}\n\n1 error detected.\n", program.name, at + 1);
            (6, log)
        }
        None => {
            let head = format!("//\n// Made up\n//\n\n.version 8.8\n.target sm_{target}\n.address_size 64\n\n");
            let instruction = own.split("asm(\"").nth(1).map_or("", |rest| rest.split(' ').next().unwrap());
            let missing = if own.contains("cast(double") { ".extern .func (.param .b32 r) _Z4castf\n" } else { "" };
            (0, format!("{head}{missing}.visible .entry walk(\n)\n{{\nnext:\n\t{instruction} %rs1, %f1;\n\tret;\n}}\n"))
        }
    };
    program.result = CString::new(result).unwrap();
    code
}

macro_rules! getters {
    ($($size:ident $get:ident)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $size(program: *mut Program, size: *mut usize) -> c_int {
            unsafe { size.write((*program).result.as_bytes_with_nul().len()) };
            0
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $get(program: *mut Program, to: *mut c_char) -> c_int {
            let bytes = unsafe { &(*program).result }.as_bytes_with_nul();
            unsafe { to.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
            0
        }
    )*};
}

getters! { nvrtcGetProgramLogSize nvrtcGetProgramLog nvrtcGetPTXSize nvrtcGetPTX }

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcDestroyProgram(program: *mut *mut Program) -> c_int {
    drop(unsafe { Box::from_raw(*program) });
    0
}
