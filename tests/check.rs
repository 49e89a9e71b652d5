//! `check` as people and CI systems meet it: which rule fires when, exit codes, and outputs that hold hostile names.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use amp_inspect::check::baseline;
use amp_inspect::check::figures::Snapshot;
use amp_inspect::check::metric::{FORMAT_METRICS, TENSOR_METRICS};
use common::{Tensor, read_safetensors, refused, testdata, write_safetensors};
use half::f16;
use serde_json::Value;

const REAL: &str = "testdata/gpt/grads_step01500.safetensors";
/// A tensor of it, in which float16 and e4m3fn lose little and much.
const NAME: &str = "h.1.fc.weight";

/// A folder with a baseline of the real dump.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn with_baseline() -> Self {
        let place = Self::new();
        let base = place.path("base.json");
        let output = check(&[REAL, "--baseline", &base, "--formats", "fp16,e4m3fn", "--update-baseline"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        place
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, contents: &str) -> String {
        std::fs::write(self.path(name), contents).unwrap();
        self.path(name)
    }

    fn dump(&self, name: &str, tensors: &[Tensor]) -> String {
        write_safetensors(Path::new(&self.path(name)), tensors);
        self.path(name)
    }

    /// The real dump with one thing changed.
    fn mutant(&self, change: impl FnOnce(&mut Vec<Tensor>)) -> String {
        let mut tensors = read_safetensors(&testdata("gpt/grads_step01500.safetensors"));
        change(&mut tensors);
        self.dump("step01500.safetensors", &tensors)
    }
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_amp-inspect"));
    command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .arg("check")
        .args(arguments)
        .env("COLUMNS", "100")
        .env_remove("GITHUB_ACTIONS")
        .env_remove("GITHUB_STEP_SUMMARY");
    command
}

fn check(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// The exit code, and what was not passed: tensor, rule and status.
fn verdict(arguments: &[&str]) -> (i32, Vec<(String, String, String)>) {
    let output = check(&[arguments, &["--json"]].concat());
    let code = output.status.code().unwrap();
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    let field = |case: &Value, name: &str| case[name].as_str().unwrap().to_owned();
    let cases = report["cases"].as_array().unwrap().iter().filter(|case| case["status"] != "passed");
    (code, cases.map(|case| (field(case, "tensor"), field(case, "rule"), field(case, "status"))).collect())
}

fn one(tensor: &str, rule: &str, status: &str) -> Vec<(String, String, String)> {
    vec![(tensor.into(), rule.into(), status.into())]
}

fn values<'t>(tensors: &'t mut [Tensor], name: &str) -> &'t mut Vec<f32> {
    &mut tensors.iter_mut().find(|(known, ..)| known == name).unwrap().2
}

const KEEP: &str = "no worse than the baseline";

#[test]
fn each_mutation_of_a_real_dump_is_found() {
    let place = Place::with_baseline();
    let base = place.path("base.json");
    let against = |path: &str| verdict(&[path, "--baseline", &base]);
    assert_eq!(against(REAL), (0, vec![]));
    assert_eq!(against(&place.mutant(|_| {})), (0, vec![]), "another container, the same figures");

    let scaled = place.mutant(|tensors| values(tensors, NAME).iter_mut().for_each(|x| *x /= 64.0));
    assert_eq!(against(&scaled), (1, one(NAME, KEEP, "failed")));

    let zeroed = place.mutant(|tensors| values(tensors, NAME).fill(0.0));
    assert_eq!(against(&zeroed), (1, one(NAME, KEEP, "failed")));

    // What float16 loses is gone now, so nothing is lost any more: better, but not what it was.
    let cast = |x: &mut f32| *x = f16::from_f32(*x).to_f32();
    let through_fp16 = place.mutant(|tensors| values(tensors, NAME).iter_mut().for_each(cast));
    assert_eq!(against(&through_fp16), (0, one(NAME, KEEP, "improved")));
    assert_eq!(verdict(&[&through_fp16, "--baseline", &base, "--ratchet"]), (1, one(NAME, KEEP, "failed")));

    let spoilt = place.mutant(|tensors| values(tensors, NAME)[100] = f32::NAN);
    assert_eq!(against(&spoilt), (1, one(NAME, KEEP, "failed")));

    let dropped = place.mutant(|tensors| tensors.retain(|(name, ..)| name != NAME));
    assert_eq!(against(&dropped), (1, one(NAME, "vanished", "failed")));

    let renamed = place.mutant(|tensors| {
        tensors.iter_mut().for_each(|(name, ..)| {
            if name == NAME {
                *name = "renamed".into();
            }
        });
    });
    let (code, cases) = against(&renamed);
    assert_eq!(
        (code, cases),
        (1, [one(NAME, "vanished", "failed"), one("renamed", "new", "failed")].concat())
    );

    let reshaped = place.mutant(|tensors| {
        tensors.iter_mut().for_each(|(name, shape, _)| {
            if name == NAME {
                shape.reverse();
            }
        });
    });
    assert_eq!(against(&reshaped), (1, one(NAME, "changed", "failed")));

    let extra = place.mutant(|tensors| tensors.push(("added".into(), vec![1], vec![1.0])));
    assert_eq!(against(&extra), (0, one("added", "new", "failed")), "new tensors only warn");
    assert_eq!(verdict(&[&extra, "--baseline", &base, "--fail-on", "warn"]).0, 1);
    assert_eq!(verdict(&[&scaled, "--baseline", &base, "--fail-on", "never"]).0, 0);
}

#[test]
fn values_that_are_the_same_are_told_by_their_digest() {
    let place = Place::with_baseline();
    let base = place.path("base.json");
    let identical = |path: &str| {
        let output = check(&[path, "--baseline", &base, "--json"]);
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["identical"].as_u64().unwrap()
    };
    assert_eq!(identical(REAL), 41);
    assert_eq!(identical(&place.mutant(|tensors| values(tensors, NAME)[7] *= 1.0 + f32::EPSILON)), 40);
    assert_eq!(identical(&place.mutant(|tensors| values(tensors, NAME).swap(0, 1))), 40);
}

#[test]
fn what_cannot_be_told_is_trouble_and_never_passes() {
    let place = Place::new();
    let nan = place.mutant(|tensors| values(tensors, NAME)[0] = f32::NAN);
    let zeros = place.mutant(|tensors| values(tensors, NAME).fill(0.0));
    let nan = {
        std::fs::rename(&nan, place.path("zeros.safetensors")).unwrap();
        let _ = (nan, zeros);
        place.mutant(|tensors| values(tensors, NAME)[0] = f32::NAN)
    };
    let zeros = place.path("zeros.safetensors");
    let rules = |name: &str, extra: &str, check: &str| {
        place.write(name, &format!("[[rule]]\ncheck = '{check}'\n{extra}"))
    };
    let strict = rules("strict.toml", "", "mse.float16 <= 1");
    assert_eq!(verdict(&[&nan, "--rules", &strict]), (2, one(NAME, "rule 1", "untold")));
    let told = text(&check(&[&nan, "--rules", &strict]).stderr).to_owned();
    assert!(told.contains("tensor 'h.1.fc.weight': 1 NaN or Inf, which mse.float16 leaves out"), "{told}");
    assert_eq!(
        verdict(&[&nan, "--rules", &rules("allow.toml", "allow_nan = true", "mse.float16 <= 1")]).0,
        0
    );
    assert_eq!(
        verdict(&[&nan, "--rules", &rules("nan.toml", "", "nan == 0")]),
        (1, one(NAME, "rule 1", "failed"))
    );
    let undefined = rules("sqnr.toml", "", "sqnr_db.float16 >= 1");
    assert_eq!(verdict(&[&zeros, "--rules", &undefined]), (2, one(NAME, "rule 1", "untold")));
    let or = rules("or.toml", "", "sqnr_db.float16 >= 1 or amax == 0");
    assert_eq!(verdict(&[&zeros, "--rules", &or]).0, 0, "one side is enough");

    let unused = place.write(
        "unused.toml",
        "[[rule]]\ncheck = 'nan == 0'\n[[rule]]\ntensor = '^h\\.'\ncheck = 'nan == 0'\n",
    );
    let output = check(&[REAL, "--rules", &unused]);
    assert_eq!(output.status.code(), Some(2));
    let sentence =
        "rule 'rule 2' (line 3) is never used: rules before it take all 36 tensors that it matches";
    assert!(text(&output.stderr).contains(sentence), "{}", text(&output.stderr));
    let none = place.write(
        "none.toml",
        "[[rule]]\ntensor = 'nothing'\ncheck = 'nan == 0'\n[severity]\nno_rule = 'ignore'",
    );
    let output = check(&[REAL, "--rules", &none]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("rule 'rule 1' (line 1) matches no tensor"));
    refused(
        &["check", REAL, "--rules", &strict, "--tensor", "^nothing$"],
        "no tensor is left to read: check --tensor and --exclude",
    );
    let broken = rules("broken.toml", "", "msee.float16 <= 1");
    let output = check(&[REAL, "--rules", &broken]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("broken.toml: line 2, column 10: there is no figure 'msee'"));
    let relative = rules("relative.toml", "", "mse.float16 <= baseline");
    assert!(text(&check(&[REAL, "--rules", &relative]).stderr).contains("give --baseline"));
    refused(&["check", REAL], "there is nothing to check against: give --rules, --baseline or both");
}

#[test]
fn a_baseline_reads_back_and_its_diff_is_short() {
    let place = Place::with_baseline();
    let first = std::fs::read_to_string(place.path("base.json")).unwrap();
    let snapshot: Snapshot = baseline::read(&first).unwrap();
    assert_eq!(baseline::write(&snapshot), first);
    let scaled = place.mutant(|tensors| values(tensors, NAME).iter_mut().for_each(|x| *x /= 64.0));
    let base = place.path("base.json");
    let output = check(&[&scaled, "--baseline", &base, "--formats", "fp16,e4m3fn", "--update-baseline"]);
    assert!(
        text(&output.stdout).contains("baseline of 41 tensors (1 changed, 0 new, 0 gone)"),
        "{}",
        text(&output.stdout)
    );
    let second = std::fs::read_to_string(&base).unwrap();
    let lines = first.lines().zip(second.lines()).filter(|(a, b)| a != b).count();
    assert_eq!(
        (lines, first.lines().count()),
        (4, second.lines().count()),
        "what it is, its values, two formats"
    );
    for (from, to, sentence) in [
        ("\"schema_version\": 1", "\"schema_version\": 2", "has schema version 2, of a newer amp-inspect"),
        ("\"schema_version\": 1", "\"schema_version\": 0", "has no schema version that is known"),
        ("\"kind\": \"amp", "\"kind\": \"x", "is no baseline: its field 'kind'"),
        ("\"scale\":1.0", "\"scale\":2.0", "was made with other options: scale 2.0 there, 1.0 now"),
        ("\"name\":", "\"nam\":", "tensor 1 is damaged"),
    ] {
        let other = place.write("other.json", &first.replace(from, to));
        let output = check(&[REAL, "--baseline", &other]);
        assert_eq!(output.status.code(), Some(2), "{sentence}");
        assert!(text(&output.stderr).contains(sentence), "{}", text(&output.stderr));
    }
}

#[test]
fn the_committed_baseline_is_that_of_today() {
    // After a wanted change: AMP_INSPECT_BLESS=1 cargo test --release --test check, then read the diff.
    let place = Place::with_baseline();
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("reports/gpt_baseline.json");
    if std::env::var_os("AMP_INSPECT_BLESS").is_some() {
        std::fs::copy(place.path("base.json"), &committed).unwrap();
    }
    let today = std::fs::read_to_string(place.path("base.json")).unwrap();
    assert!(std::fs::read_to_string(committed).unwrap_or_default() == today, "see the top of this test");
}

#[test]
fn a_report_made_before_is_checked_as_the_dump_is() {
    let place = Place::with_baseline();
    let (base, report) = (place.path("base.json"), place.path("report.json"));
    let histogram = |path: &str| {
        let arguments = ["histogram", path, "--formats", "fp16,e4m3fn", "--quiet", "--save", &report];
        assert!(common::amp_inspect(&arguments).status.success());
    };
    histogram(REAL);
    assert_eq!(verdict(&[&report, "--baseline", &base]), (0, vec![]));
    let value: Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    let numbers = |object: &Value, apart: &[&str]| -> Vec<String> {
        let figures = object.as_object().unwrap().iter().filter(|(name, value)| {
            !apart.contains(&name.as_str()) && (value.is_number() || value.is_null() || value.is_string())
        });
        figures.map(|(name, _)| name.clone()).collect()
    };
    // The names are those of the report, all of them.
    assert_eq!(numbers(&value["tensors"][0], &["input", "name", "step", "rank", "dtype"]), TENSOR_METRICS);
    assert_eq!(numbers(&value["tensors"][0]["formats"][0], &["format"]), FORMAT_METRICS);
    histogram("testdata/gpt/grads_step00400.safetensors");
    let dump = verdict(&["testdata/gpt/grads_step00400.safetensors", "--baseline", &base]);
    assert_eq!(verdict(&[&report, "--baseline", &base]), dump);
    let other = place.write("x.json", r#"{"tool": {"name": "amp-inspect"}, "command": "formats"}"#);
    refused(
        &["check", &other, "--baseline", &base],
        &format!("{other}: is no report of 'histogram --json': its field 'command' is another"),
    );
}

/// Names that mean something to a CI system, a terminal, XML or HTML.
const HOSTILE: [&str; 8] = [
    "::error::fake",
    "  ::set-output name=x::y",
    "##[error]fake",
    "a%0A::warning::b",
    "]]><failure/>",
    "<script>alert(1)</script>",
    "\u{1b}[31mred\nline\r::notice::z",
    "`|x|` \u{202e}\u{ffff}\u{0}",
];

fn hostile(place: &Place) -> (String, String) {
    let tensors: Vec<Tensor> =
        HOSTILE.iter().map(|name| ((*name).to_owned(), vec![1], vec![1e-30])).collect();
    let rules =
        place.write("rules.toml", "[[rule]]\nname = \"::error::]]>\"\ncheck = 'underflow.float16 == 0'\n");
    (place.dump("hostile.safetensors", &tensors), rules)
}

#[test]
fn names_are_never_commands_markup_or_escapes() {
    let place = Place::new();
    let (dump, rules) = hostile(&place);
    let (xml, md, summary) = (place.path("x.xml"), place.path("x.md"), place.path("summary.md"));
    std::fs::write(&summary, "before\n").unwrap();
    let output = command(&[&dump, "--rules", &rules, "--save", &xml, "--save", &md])
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_STEP_SUMMARY", &summary)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let markdown = std::fs::read_to_string(&md).unwrap();
    assert_eq!(std::fs::read_to_string(&summary).unwrap(), format!("before\n{markdown}"));
    for shown in [text(&output.stdout), &markdown] {
        assert!(
            !shown.lines().any(|line| line.trim_start().starts_with("::") || line.contains("##[")),
            "{shown}"
        );
        assert!(!shown.contains('\u{1b}') && !shown.contains('\u{202e}'), "{shown}");
    }
    // Only our own annotations, one a tensor.
    let lines: Vec<&str> = text(&output.stderr).lines().collect();
    assert_eq!(lines.len(), HOSTILE.len(), "{lines:?}");
    assert!(
        lines.iter().all(|line| line.starts_with("::error title=") && !line.contains("##[")),
        "{lines:?}"
    );
    assert!(lines.iter().all(|line| line.matches("::").count() >= 2 && !line.contains('\r')));
    // Outside of code spans nothing that HTML or a table could take for its own.
    let outside: String = markdown.split('`').step_by(2).collect();
    assert!(
        !outside.contains('<')
            && markdown.lines().filter(|line| line.starts_with('|')).count() == HOSTILE.len() + 2
    );
    junit_is_well_formed(&std::fs::read_to_string(&xml).unwrap(), HOSTILE.len(), HOSTILE.len(), 0);
}

/// The structure that Jenkins' and GitLab's readers expect: testsuites > testsuite > testcase > failure | error, with
/// counts that add up.
fn junit_is_well_formed(xml: &str, tests: usize, failures: usize, errors: usize) {
    let document = roxmltree::Document::parse(xml).unwrap();
    let root = document.root_element();
    assert_eq!(root.tag_name().name(), "testsuites");
    let number =
        |node: roxmltree::Node<'_, '_>, name: &str| node.attribute(name).unwrap().parse::<usize>().unwrap();
    let counts = |node| ["tests", "failures", "errors"].map(|name| number(node, name));
    assert_eq!(counts(root), [tests, failures, errors]);
    let mut sums = [0; 3];
    for suite in root.children().filter(|node| node.is_element()) {
        assert_eq!(suite.tag_name().name(), "testsuite");
        assert!(suite.attribute("name").is_some());
        let cases: Vec<_> = suite.children().filter(|node| node.is_element()).collect();
        let mut found = [cases.len(), 0, 0];
        for case in cases {
            assert_eq!(case.tag_name().name(), "testcase");
            assert!(case.attribute("name").is_some() && case.attribute("classname").is_some());
            for outcome in case.children().filter(|node| node.is_element()) {
                match outcome.tag_name().name() {
                    "failure" => found[1] += 1,
                    "error" => found[2] += 1,
                    "system-out" => continue,
                    other => panic!("{other}"),
                }
                assert!(outcome.attribute("message").is_some() && outcome.attribute("type").is_some());
            }
        }
        assert_eq!(found, counts(suite));
        sums.iter_mut().zip(found).for_each(|(sum, count)| *sum += count);
    }
    assert_eq!(sums, [tests, failures, errors]);
}

#[test]
fn junit_has_a_case_for_each_tensor_and_rule() {
    let place = Place::with_baseline();
    let (base, xml) = (place.path("base.json"), place.path("x.xml"));
    let saved = |arguments: &[&str]| {
        let _ = check(&[arguments, &["--save", &xml]].concat());
        std::fs::read_to_string(&xml).unwrap()
    };
    junit_is_well_formed(&saved(&[REAL, "--baseline", &base]), 41, 0, 0);
    let later = "testdata/gpt/grads_step00400.safetensors";
    junit_is_well_formed(&saved(&[later, "--baseline", &base]), 41, 41, 0);
    let rules = place.write("rules.toml", "[[rule]]\nseverity = 'warn'\ntensor = 'fc'\ncheck = 'amax < 0'\n[[rule]]\ntensor='zzz'\ncheck='nan==0'\n[severity]\nno_rule = 'ignore'\n");
    // A warning is no failure; a rule that matches nothing is an error.
    junit_is_well_formed(&saved(&[REAL, "--rules", &rules]), 7, 0, 1);
    junit_is_well_formed(&saved(&[REAL, "--rules", &rules, "--fail-on", "warn"]), 7, 6, 1);
    let compared = place.path("compare.xml");
    let _ = common::amp_inspect(&["compare", later, REAL, "--save", &compared]);
    junit_is_well_formed(&std::fs::read_to_string(&compared).unwrap(), 41, 41, 0);
    let why = "cannot save: this command judges nothing; the extensions are .json, .csv, .md, .png, .svg";
    let refused_path = PathBuf::from(&xml).to_str().unwrap().to_owned();
    refused(&["histogram", REAL, "--save", &xml], &format!("{refused_path}: {why}"));
}

#[test]
fn many_findings_keep_to_the_limits_of_github() {
    let place = Place::new();
    let name = |number: usize| format!("layer.{number}.{}", "x".repeat(60));
    let tensors: Vec<Tensor> = (0..12_000).map(|number| (name(number), vec![1], vec![1e-30])).collect();
    let dump = place.dump("many.safetensors", &tensors);
    let rules = place.write("rules.toml", "[[rule]]\ncheck = 'underflow.float16 == 0'\n");
    let summary = place.path("summary.md");
    let output = command(&[&dump, "--rules", &rules])
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_STEP_SUMMARY", &summary)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let lines: Vec<&str> = text(&output.stderr).lines().collect();
    assert_eq!(lines.len(), 10);
    assert_eq!(lines[9], "::error title=amp-inspect check::11991 more like these, see the summary");
    let length = std::fs::metadata(&summary).unwrap().len();
    assert!((500_000..1 << 20).contains(&length), "{length}");
    assert!(text(&output.stdout).lines().count() < 50);
}

#[test]
fn the_workflows_run_commands_that_there_are() {
    for system in ["github", "gitlab"] {
        let output = common::amp_inspect(&["init-ci", system]);
        assert_eq!(output.status.code(), Some(0));
        let place = Place::new();
        let grads = place.path("grads.safetensors");
        std::fs::copy(testdata("gpt/grads_step01500.safetensors"), grads).unwrap();
        let commands: Vec<String> = text(&output.stdout)
            .lines()
            .filter_map(|line| line.split_once("amp-inspect check ").map(|(_, rest)| rest.to_owned()))
            .collect();
        assert!(commands.len() == 2 && commands[0].ends_with("--update-baseline"), "{commands:?}");
        for line in commands {
            let run = Command::new(env!("CARGO_BIN_EXE_amp-inspect"))
                .current_dir(place.0.path())
                .arg("check")
                .args(line.split(' '))
                .output()
                .unwrap();
            assert_eq!(run.status.code(), Some(0), "{line}: {}", text(&run.stderr));
        }
        assert!(Path::new(&place.path("precision.xml")).exists());
    }
}

/// A dump of two tensors, whose second loses everything in float16.
fn two(place: &Place) -> String {
    let tensors = [("a", 1.0), ("b", 1e-30)].map(|(name, x)| (name.to_owned(), vec![2], vec![x, 1.0]));
    place.dump("two.safetensors", &tensors)
}

/// The only sentence of a command that is refused and leaves every file as it was.
fn refused_in(place: &Place, arguments: &[&str], sentence: &str) {
    let files = || -> Vec<(PathBuf, Vec<u8>)> {
        let entries = std::fs::read_dir(place.0.path()).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> = entries.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
        files.sort();
        files
    };
    let before = files();
    let output = command(arguments).output().unwrap();
    let told = text(&output.stderr);
    assert!(told.contains(sentence) && told.lines().count() == 1, "{sentence}: {told}");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), ""), "{arguments:?}");
    assert!(files() == before, "{arguments:?} changed a file");
}

#[test]
fn a_baseline_never_replaces_what_is_none() {
    let place = Place::with_baseline();
    let (dump, base) = (two(&place), place.path("base.json"));
    let rules = place.write("rules.toml", "[[rule]]\ncheck = 'nan == 0'\n");
    let input = "cannot save: it is an input, which would be lost";
    refused_in(&place, &[&dump, "--baseline", &dump, "--update-baseline"], input);
    refused_in(&place, &[&dump, "--rules", &rules, "--baseline", &rules, "--update-baseline"], input);
    refused_in(&place, &[&dump, "--baseline", &base, "--save", &base], input);
    refused_in(
        &place,
        &[&dump, "--rules", &rules, "--save", &base, "--save", &base],
        "named for two outputs",
    );
    let other = place.write("other.json", "{\"a\": 1}");
    let sentence = "other.json: is no baseline, and so is not replaced by one";
    refused_in(&place, &[&dump, "--baseline", &other, "--update-baseline"], sentence);
    refused_in(&place, &[&dump, "--baseline", "no/such/b.json", "--update-baseline"], "cannot save: no such");
    // One of another version is what the message about it says to replace.
    let old =
        std::fs::read_to_string(&base).unwrap().replace("\"schema_version\": 1", "\"schema_version\": 0");
    let old = place.write("old.json", &old);
    let output = check(&[&dump, "--baseline", &old, "--update-baseline"]);
    assert!(text(&output.stdout).ends_with("baseline of 2 tensors (in place of one that cannot be read)\n"));
    assert_eq!(verdict(&[&dump, "--baseline", &old]), (0, vec![]));
}

#[test]
fn a_filtered_update_keeps_the_other_tensors() {
    let place = Place::with_baseline();
    let base = place.path("base.json");
    let before = std::fs::read_to_string(&base).unwrap();
    let later = "testdata/gpt/grads_step00400.safetensors";
    let filtered = |path: &str| check(&[path, "--baseline", &base, "--tensor", "fc", "--update-baseline"]);
    let output = filtered(REAL);
    assert!(
        text(&output.stdout).ends_with("baseline of 41 tensors (0 changed, 0 new, 0 gone, 35 kept)\n"),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    // The formats too are those that it had.
    assert_eq!(std::fs::read_to_string(&base).unwrap(), before);
    assert_eq!(filtered(later).status.code(), Some(0));
    let fc =
        |cases: &[(String, String, String)]| cases.iter().filter(|(name, ..)| name.contains("fc")).count();
    let (code, cases) = verdict(&[REAL, "--baseline", &base]);
    assert_eq!((code, fc(&cases)), (1, cases.len()), "{cases:?}");
    assert!(cases.iter().all(|(_, rule, _)| rule == KEEP), "none vanished, none is new: {cases:?}");
    let (code, cases) = verdict(&[later, "--baseline", &base]);
    assert_eq!((code, fc(&cases), cases.len()), (1, 0, 35), "{cases:?}");
    let sentence = "was made with other options: scale 1.0 there, 2.0 now; the tensors that are filtered out";
    refused_in(
        &place,
        &[REAL, "--baseline", &base, "--tensor", "fc", "--scale", "2", "--update-baseline"],
        sentence,
    );
}

#[test]
fn a_damaged_baseline_is_none() {
    let place = Place::new();
    let (dump, base) = (two(&place), place.path("base.json"));
    let _ = check(&[&dump, "--baseline", &base, "-f", "fp16", "--update-baseline"]);
    let good = std::fs::read_to_string(&base).unwrap();
    let start = good.find(" \"tensors\"").unwrap();
    let tensor =
        &good[good.find("  {\"name\"").or(good.find("  {\"dtype\"")).unwrap()..good.rfind("\n ]").unwrap()];
    let list = |tensors: &str| format!("{} \"tensors\": {tensors}\n}}\n", &good[..start]);
    for (damaged, sentence) in [
        (list("5"), "is no baseline: its field 'tensors' is no list of tensors"),
        (list("[]"), "is no baseline: its field 'tensors' is no list of tensors"),
        (list(&format!("[{tensor}, {tensor}]")), "is no baseline: tensor 'a' is there twice"),
        (good.replacen("\"amax\":1", "\"amax\":\"1\"", 1), "is no baseline: tensor 1 is damaged"),
        (good.replacen("\"shape\":[2]", "\"shape\":[-1,\"a\"]", 1), "is no baseline: tensor 1 is damaged"),
        (good.replacen("\"rank\":null", "\"rank\":\"0\"", 1), "is no baseline: tensor 1 is damaged"),
        (good.replacen("\"stored\":", "\"sored\":", 1), "is no baseline: tensor 1 is damaged"),
        (good.replacen("\"options\":", "\"option\":", 1), "is no baseline: its field 'options' is missing"),
    ] {
        assert!(damaged != good, "{sentence}");
        let path = place.write("damaged.json", &damaged);
        refused_in(&place, &[&dump, "--baseline", &path], &format!("damaged.json: {sentence}"));
    }
}

#[test]
fn a_report_can_only_be_chosen_from() {
    let place = Place::new();
    let (dump, report, base) = (two(&place), place.path("report.json"), place.path("base.json"));
    let _ = common::amp_inspect(&["histogram", &dump, "-f", "fp16", "--quiet", "--save", &report]);
    let rules = place.write("rules.toml", "[[rule]]\ncheck = 'underflow.float16 == 0'\n");
    assert_eq!(verdict(&[&report, "--rules", &rules]), (1, one("b", "rule 1", "failed")));
    assert_eq!(verdict(&[&report, "--rules", &rules, "--tensor", "a"]), (0, vec![]));
    assert_eq!(verdict(&[&report, "--rules", &rules, "--exclude", "b"]), (0, vec![]));
    refused_in(&place, &[&report, "--rules", &rules, "--tensor", "c"], "no tensor of the report is left");
    for (option, value) in [
        ("--scale", "2"),
        ("--unscale", "2"),
        ("--dtype", "fp16"),
        ("--profile", "torch"),
        ("--rounding", "up"),
    ] {
        let sentence = format!("report.json: is a report: {option} needs the dump that it was made of");
        refused_in(&place, &[&report, "--rules", &rules, option, value], &sentence);
    }
    let sentence = "report.json: is a report without figures of e3m4";
    refused_in(&place, &[&report, "--baseline", &base, "-f", "e3m4", "--update-baseline"], sentence);
    // What could not be read when the report was made is missing in it.
    let whole = std::fs::read_to_string(&report).unwrap();
    let cut =
        place.write("cut.json", &whole.replace("\"problems\": []", "\"problems\": [\"x.npy: is cut off\"]"));
    let output = check(&[&cut, "--rules", &rules, "--tensor", "a"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stderr), "amp-inspect: x.npy: is cut off\n");
    assert_eq!(check(&[&cut, "--baseline", &base, "--update-baseline"]).status.code(), Some(2));
    assert!(!Path::new(&base).exists());
}

#[test]
fn limits_are_finite_unless_the_baseline_is_not() {
    let place = Place::new();
    let (dump, base) = (two(&place), place.path("base.json"));
    let rules = |check: &str| place.write("rules.toml", &format!("[[rule]]\ncheck = '{check}'\n"));
    for limit in ["1e999", "0 / 0", "-(1 / 0)"] {
        let rules = rules(&format!("amax <= {limit}"));
        let sentence = "rules.toml: line 2, column 18: the ";
        refused_in(&place, &[&dump, "--rules", &rules], sentence);
    }
    let _ = check(&[&dump, "--baseline", &base, "-f", "fp32,fp16", "--update-baseline"]);
    let against = |check: &str| verdict(&[&dump, "--rules", &rules(check), "--baseline", &base]);
    // float32 keeps both exactly.
    assert_eq!(against("sqnr_db.float32 >= baseline - 1"), (0, vec![]));
    assert_eq!(against("sqnr_db.float16 <= baseline / 0 or nan == 0"), (0, vec![]), "one side is enough");
    let both = [one("a", "rule 1", "untold"), one("b", "rule 1", "untold")].concat();
    assert_eq!(against("amax <= baseline / 0"), (2, both.clone()));
    assert_eq!(against("sqnr_db.float32 >= baseline - baseline"), (2, both));
    let output = check(&[&dump, "--rules", &rules("amax <= baseline / 0"), "--baseline", &base]);
    let sentence = "tensor 'a': the limit of amax is no finite number, with 1.0 in the baseline";
    assert!(text(&output.stderr).contains(sentence), "{}", text(&output.stderr));
}

#[test]
fn formats_that_nothing_asks_about_are_refused() {
    let place = Place::new();
    let (dump, base) = (two(&place), place.path("base.json"));
    let _ = check(&[&dump, "--baseline", &base, "-f", "fp16,e4m3fn", "--update-baseline"]);
    assert_eq!(verdict(&[&dump, "--baseline", &base, "-f", "fp16"]), (0, vec![]));
    let sentence = "--formats e3m4: neither the rules nor the baseline have a figure of it";
    refused_in(&place, &[&dump, "--baseline", &base, "-f", "fp16,e3m4"], sentence);
}

#[test]
fn the_suggested_update_can_be_run() {
    let place = Place::new();
    let base = place.path("base.json");
    let dump = two(&place);
    let _ = check(&[&dump, "--baseline", &base, "--update-baseline"]);
    let tensors = [("", 1e-30)].map(|(name, x)| (name.to_owned(), vec![1], vec![x]));
    let other = place.dump("-other.safetensors", &tensors);
    let xml = place.path("x.xml");
    let output = check(&["--baseline", &base, "--save", &xml, "--", &other]);
    assert_eq!(output.status.code(), Some(1));
    let suggested = format!("\n  amp-inspect check --baseline {base} --update-baseline -- {other}\n");
    assert!(text(&output.stdout).contains(&suggested), "{}", text(&output.stdout));
    // A tensor without a name can be seen.
    assert!(text(&output.stdout).contains("(no name)"), "{}", text(&output.stdout));
    assert!(std::fs::read_to_string(&xml).unwrap().contains("name=\"(no name)\""));
    assert_eq!(check(&["--baseline", &base, "--update-baseline", "--", &other]).status.code(), Some(0));
    assert_eq!(verdict(&[&other, "--baseline", &base]).0, 0);
}
