//! Every scaler that can be replayed: one cited row each.

use super::policy::{
    als, apex, cerebras, chainer, colossalai, fairseq, flax, iteration, jmp, keras, megatron, mindspore,
    mxnet, openseq2seq, paddle, torch,
};
use super::settings::Range;
use super::{Float, LooksAt, Parameter, ScalerSpec};
use crate::error::{Error, Result, escape};

/// No value: the framework's `None`.
const NONE: f64 = f64::NAN;
/// Letters at the start that alike names share.
const ALIKE: usize = 4;
/// Smallest normal f32.
const FLT_MIN: f64 = f32::MIN_POSITIVE as f64;

const fn scale(name: &'static str, default: f64) -> Parameter {
    Parameter::new(name, default, Range::Scale)
}

const fn number(name: &'static str, default: f64) -> Parameter {
    Parameter::new(name, default, Range::Number)
}

const fn optional(name: &'static str, default: f64) -> Parameter {
    Parameter::new(name, default, Range::Optional)
}

const fn positive(name: &'static str, default: f64) -> Parameter {
    Parameter::new(name, default, Range::Positive)
}

const fn above_one(name: &'static str, default: f64) -> Parameter {
    Parameter::new(name, default, Range::AboveOne)
}

const fn below_one(name: &'static str, default: f64) -> Parameter {
    Parameter::new(name, default, Range::BelowOne)
}

const fn count(name: &'static str, default: f64) -> Parameter {
    Parameter::new(name, default, Range::Count)
}

const fn divisor(name: &'static str, default: f64) -> Parameter {
    Parameter::new(name, default, Range::Divisor)
}

const fn flag(name: &'static str, default: f64) -> Parameter {
    Parameter::new(name, default, Range::Flag)
}

/// Every scaler that can be replayed.
pub const SCALERS: &[ScalerSpec] = &[
    ScalerSpec {
        name: "static",
        aliases: &[],
        about: "a constant scale; steps that overflow are skipped",
        source: "Micikevicius et al. 2018, arXiv:1710.03740, section 3.2",
        float: Float::F64,
        divides_by_new_scale: false,
        multiplies_by_inverse: false,
        looks_at: LooksAt::Flags,
        parameters: &[scale("scale", 1024.0)],
        new: apex::Static::start,
    },
    ScalerSpec {
        name: "torch",
        aliases: &["pytorch", "gradscaler"],
        about: "torch.amp.GradScaler since 2.1",
        source: "PyTorch 2.15.0: torch/amp/grad_scaler.py, aten AmpKernels",
        float: Float::F32,
        divides_by_new_scale: false,
        multiplies_by_inverse: true,
        looks_at: LooksAt::Flags,
        parameters: &[
            scale("init_scale", 65536.0),
            above_one("growth_factor", 2.0),
            below_one("backoff_factor", 0.5),
            count("growth_interval", 2000.0),
            count("growth_tracker", 0.0),
        ],
        new: torch::Torch::start,
    },
    ScalerSpec {
        name: "torch@<2.1",
        aliases: &[],
        about: "the same before growth to Inf was stopped (PR 98876)",
        source: "PyTorch 2.0: torch/cuda/amp/grad_scaler.py",
        float: Float::F32,
        divides_by_new_scale: false,
        multiplies_by_inverse: true,
        looks_at: LooksAt::Flags,
        parameters: &[
            scale("init_scale", 65536.0),
            above_one("growth_factor", 2.0),
            below_one("backoff_factor", 0.5),
            count("growth_interval", 2000.0),
            count("growth_tracker", 0.0),
        ],
        new: torch::Torch::before_2_1,
    },
    ScalerSpec {
        name: "torch-fsdp",
        aliases: &["fsdp"],
        about: "ShardedGradScaler on CPU tensors: f32 products, no guard",
        source: "PyTorch 2.15.0: torch/distributed/fsdp/sharded_grad_scaler.py",
        float: Float::F32,
        divides_by_new_scale: false,
        multiplies_by_inverse: true,
        looks_at: LooksAt::Flags,
        parameters: &[
            scale("init_scale", 65536.0),
            above_one("growth_factor", 2.0),
            below_one("backoff_factor", 0.5),
            count("growth_interval", 2000.0),
            count("growth_tracker", 0.0),
        ],
        new: torch::Torch::fsdp_on_cpu,
    },
    ScalerSpec {
        name: "accelerate",
        aliases: &["hf-accelerate"],
        about: "GradScaler updated once for each optimizer, as AcceleratedOptimizer does",
        source: "Accelerate 1.15.0: src/accelerate/optimizer.py",
        float: Float::F32,
        divides_by_new_scale: false,
        multiplies_by_inverse: true,
        looks_at: LooksAt::Flags,
        parameters: &[
            scale("init_scale", 65536.0),
            above_one("growth_factor", 2.0),
            below_one("backoff_factor", 0.5),
            count("growth_interval", 2000.0),
            count("growth_tracker", 0.0),
            divisor("optimizers", 1.0),
        ],
        new: torch::Torch::accelerate,
    },
    ScalerSpec {
        name: "nemo",
        aliases: &["apex-hysteresis"],
        about: "NeMo GradScaler and the Apex kernel update_scale_hysteresis: N overflows in a row",
        source: "Apex 6424da3b: csrc/update_scale_hysteresis.cu",
        float: Float::F32,
        divides_by_new_scale: false,
        multiplies_by_inverse: true,
        looks_at: LooksAt::Flags,
        parameters: &[
            scale("init_scale", 65536.0),
            above_one("growth_factor", 2.0),
            below_one("backoff_factor", 0.5),
            count("growth_interval", 2000.0),
            count("growth_tracker", 0.0),
            count("hysteresis", 2.0),
        ],
        new: torch::Torch::with_hysteresis,
    },
    ScalerSpec {
        name: "apex",
        aliases: &["apex-amp"],
        about: "apex.amp with loss_scale=\"dynamic\"",
        source: "Apex cb65b8ed^: apex/amp/scaler.py",
        float: Float::F64,
        divides_by_new_scale: false,
        multiplies_by_inverse: true,
        looks_at: LooksAt::Flags,
        parameters: &[
            scale("init_scale", 65536.0),
            count("scale_window", 2000.0),
            optional("min_loss_scale", NONE),
            scale("max_loss_scale", 16_777_216.0),
        ],
        new: apex::Apex::start,
    },
    ScalerSpec {
        name: "apex-static",
        aliases: &[],
        about: "apex.amp with a number for loss_scale: overflows are applied",
        source: "Apex cb65b8ed^: apex/amp/scaler.py",
        float: Float::F64,
        divides_by_new_scale: false,
        multiplies_by_inverse: true,
        looks_at: LooksAt::Flags,
        parameters: &[scale("loss_scale", 1.0)],
        new: apex::Static::apex,
    },
    ScalerSpec {
        name: "apex-fp16-utils",
        aliases: &["fp16-utils"],
        about: "apex.fp16_utils DynamicLossScaler; also mmdet, Tacotron 2",
        source: "Apex cb65b8ed^: apex/fp16_utils/loss_scaler.py",
        float: Float::F64,
        divides_by_new_scale: false,
        multiplies_by_inverse: false,
        looks_at: LooksAt::Flags,
        parameters: &[
            scale("init_scale", 4_294_967_296.0),
            positive("scale_factor", 2.0),
            divisor("scale_window", 1000.0),
            number("min_scale", 1.0),
        ],
        new: iteration::Iteration::apex_fp16_utils,
    },
    ScalerSpec {
        name: "megatron",
        aliases: &["megatron-core"],
        about: "Megatron-core DynamicGradScaler",
        source: "Megatron-LM d98e8a64: megatron/core/optimizer/grad_scaler.py",
        float: Float::F32,
        divides_by_new_scale: false,
        multiplies_by_inverse: true,
        looks_at: LooksAt::Flags,
        parameters: &[
            positive("initial_scale", 4_294_967_296.0),
            positive("min_scale", 1.0),
            above_one("growth_factor", 2.0),
            below_one("backoff_factor", 0.5),
            divisor("growth_interval", 1000.0),
            divisor("hysteresis", 2.0),
        ],
        new: megatron::Megatron::start,
    },
    ScalerSpec {
        name: "megatron@<2020",
        aliases: &["megatron-legacy"],
        about: "its first fp16 loss scaler",
        source: "Megatron-LM b84d7a90^: megatron/fp16/loss_scaler.py",
        float: Float::F64,
        divides_by_new_scale: false,
        multiplies_by_inverse: false,
        looks_at: LooksAt::Flags,
        parameters: &[
            scale("init_scale", 4_294_967_296.0),
            positive("scale_factor", 2.0),
            divisor("scale_window", 1000.0),
            number("min_scale", 1.0),
            count("delayed_shift", 2.0),
            flag("consecutive_hysteresis", 0.0),
        ],
        new: iteration::Iteration::megatron_legacy,
    },
    ScalerSpec {
        name: "deepspeed",
        aliases: &["deepspeed-zero", "deepspeed@>=0.17.1"],
        about: "DeepSpeed ZeRO 1, 2 and 3, from 0.17.1 on",
        source: "DeepSpeed edaa7221: deepspeed/runtime/fp16/loss_scaler.py",
        float: Float::F64,
        divides_by_new_scale: true,
        multiplies_by_inverse: false,
        looks_at: LooksAt::Flags,
        parameters: &[
            scale("init_scale", 65536.0),
            positive("scale_factor", 2.0),
            divisor("scale_window", 1000.0),
            number("min_scale", 1.0),
            count("hysteresis", 2.0),
            flag("consecutive_hysteresis", 0.0),
            flag("raise_error_at_min_scale", 1.0),
        ],
        new: iteration::Iteration::deepspeed,
    },
    ScalerSpec {
        name: "deepspeed@<=0.17.0",
        aliases: &["deepspeed@<0.17.1"],
        about: "the same before PR 6976: growth one step earlier",
        source: "DeepSpeed e440506b^: deepspeed/runtime/fp16/loss_scaler.py",
        float: Float::F64,
        divides_by_new_scale: true,
        multiplies_by_inverse: false,
        looks_at: LooksAt::Flags,
        parameters: &[
            scale("init_scale", 65536.0),
            positive("scale_factor", 2.0),
            divisor("scale_window", 1000.0),
            number("min_scale", 1.0),
            count("hysteresis", 2.0),
            flag("consecutive_hysteresis", 0.0),
            flag("raise_error_at_min_scale", 1.0),
        ],
        new: iteration::Iteration::deepspeed_before_0_17_1,
    },
    ScalerSpec {
        name: "deepspeed-stage0",
        aliases: &[],
        about: "DeepSpeed without ZeRO (fused and unfused FP16 optimizers): no hysteresis",
        source: "DeepSpeed 0.19.8: deepspeed/runtime/fp16/fused_optimizer.py",
        float: Float::F64,
        divides_by_new_scale: true,
        multiplies_by_inverse: false,
        looks_at: LooksAt::Flags,
        parameters: &[
            scale("init_scale", 65536.0),
            positive("scale_factor", 2.0),
            divisor("scale_window", 1000.0),
            number("min_scale", 1.0),
        ],
        new: iteration::Iteration::deepspeed_stage0,
    },
    ScalerSpec {
        name: "colossalai",
        aliases: &[],
        about: "ColossalAI DynamicGradScaler with the booster defaults",
        source: "ColossalAI 4f9953be: colossalai/amp/naive_amp/grad_scaler",
        float: Float::F32,
        divides_by_new_scale: true,
        multiplies_by_inverse: false,
        looks_at: LooksAt::Flags,
        parameters: &[
            scale("initial_scale", 65536.0),
            above_one("growth_factor", 2.0),
            below_one("backoff_factor", 0.5),
            count("growth_interval", 1000.0),
            count("hysteresis", 2.0),
            optional("min_scale", 1.0),
            optional("max_scale", 4_294_967_296.0),
        ],
        new: colossalai::ColossalAi::start,
    },
    ScalerSpec {
        name: "fairseq",
        aliases: &[],
        about: "fairseq --fp16; scale_window is 2^14 / workers / update_freq",
        source: "fairseq 3d262bb2: fairseq/optim/dynamic_loss_scaler.py",
        float: Float::F64,
        divides_by_new_scale: false,
        multiplies_by_inverse: false,
        looks_at: LooksAt::Flags,
        parameters: &[
            scale("init_scale", 128.0),
            positive("scale_factor", 2.0),
            divisor("scale_window", 16384.0),
            number("tolerance", 0.0),
            optional("threshold", NONE),
            number("min_loss_scale", 1e-4),
        ],
        new: fairseq::Fairseq::start,
    },
    ScalerSpec {
        name: "metaseq",
        aliases: &["opt"],
        about: "metaseq (OPT): the window doubles and halves with the scale",
        source: "metaseq f7ffa5fd: metaseq/optim/dynamic_loss_scaler.py",
        float: Float::F64,
        divides_by_new_scale: false,
        multiplies_by_inverse: false,
        looks_at: LooksAt::Flags,
        parameters: &[
            scale("init_scale", 4.0),
            positive("scale_factor", 2.0),
            divisor("scale_window", 256.0),
            number("tolerance", 0.0),
            optional("threshold", NONE),
            number("min_loss_scale", 0.03125),
        ],
        new: fairseq::Fairseq::metaseq,
    },
    ScalerSpec {
        name: "paddle",
        aliases: &[],
        about: "paddle.amp.GradScaler (dygraph)",
        source: "PaddlePaddle 3.3.1: python/paddle/amp/grad_scaler.py",
        float: Float::F32,
        divides_by_new_scale: false,
        multiplies_by_inverse: true,
        looks_at: LooksAt::Flags,
        parameters: &[
            scale("init_loss_scaling", 65536.0),
            above_one("incr_ratio", 2.0),
            below_one("decr_ratio", 0.5),
            count("incr_every_n_steps", 2000.0),
            count("decr_every_n_nan_or_inf", 1.0),
        ],
        new: paddle::Paddle::dygraph,
    },
    ScalerSpec {
        name: "paddle-static",
        aliases: &[],
        about: "operator update_loss_scaling (static graph, PIR): gradients zeroed on overflow",
        source: "PaddlePaddle 3.3.1: phi update_loss_scaling kernel",
        float: Float::F32,
        divides_by_new_scale: false,
        multiplies_by_inverse: true,
        looks_at: LooksAt::Flags,
        parameters: &[
            scale("init_loss_scaling", 32768.0),
            above_one("incr_ratio", 2.0),
            below_one("decr_ratio", 0.8),
            count("incr_every_n_steps", 1000.0),
            count("decr_every_n_nan_or_inf", 2.0),
        ],
        new: paddle::Paddle::operator,
    },
    ScalerSpec {
        name: "keras",
        aliases: &["keras3"],
        about: "Keras 3 LossScaleOptimizer, JAX backend",
        source: "Keras 3.15.1: keras/src/optimizers/loss_scale_optimizer.py",
        float: Float::F32,
        divides_by_new_scale: false,
        multiplies_by_inverse: false,
        looks_at: LooksAt::Flags,
        parameters: &[scale("initial_scale", 32768.0), count("dynamic_growth_steps", 2000.0)],
        new: keras::Keras3::start,
    },
    ScalerSpec {
        name: "keras2",
        aliases: &["tf-keras"],
        about: "Keras 2 LossScaleOptimizer",
        source: "tf-keras 2.21.0: tf_keras/mixed_precision/loss_scale_optimizer.py",
        float: Float::F32,
        divides_by_new_scale: false,
        multiplies_by_inverse: false,
        looks_at: LooksAt::Flags,
        parameters: &[
            scale("initial_scale", 32768.0),
            count("dynamic_growth_steps", 2000.0),
            positive("multiplier", 2.0),
        ],
        new: keras::TensorFlow::keras2,
    },
    ScalerSpec {
        name: "tf1",
        aliases: &["tensorflow-v1"],
        about: "TensorFlow 1 DynamicLossScale",
        source: "TensorFlow 2.21.0: mixed_precision/experimental/loss_scale.py",
        float: Float::F32,
        divides_by_new_scale: false,
        multiplies_by_inverse: false,
        looks_at: LooksAt::Flags,
        parameters: &[
            scale("initial_loss_scale", 32768.0),
            count("increment_period", 2000.0),
            positive("multiplier", 2.0),
        ],
        new: keras::TensorFlow::v1,
    },
    ScalerSpec {
        name: "jmp",
        aliases: &[],
        about: "jmp.DynamicLossScale, eager",
        source: "jmp 0.0.4: jmp/_src/loss_scale.py",
        float: Float::F32,
        divides_by_new_scale: false,
        multiplies_by_inverse: false,
        looks_at: LooksAt::Flags,
        parameters: &[
            scale("loss_scale", 32768.0),
            positive("factor", 2.0),
            divisor("period", 2000.0),
            number("min_loss_scale", 1.0),
        ],
        new: jmp::Jmp::eager,
    },
    ScalerSpec {
        name: "jmp-jit",
        aliases: &[],
        about: "the same after jax.jit, where the floor is always 1",
        source: "jmp 0.0.4: jmp/_src/loss_scale.py",
        float: Float::F32,
        divides_by_new_scale: false,
        multiplies_by_inverse: false,
        looks_at: LooksAt::Flags,
        parameters: &[
            scale("loss_scale", 32768.0),
            positive("factor", 2.0),
            divisor("period", 2000.0),
            number("min_loss_scale", 1.0),
        ],
        new: jmp::Jmp::jit,
    },
    ScalerSpec {
        name: "flax",
        aliases: &[],
        about: "flax DynamicScale",
        source: "flax 0.12.8: flax/training/dynamic_scale.py",
        float: Float::F32,
        divides_by_new_scale: false,
        multiplies_by_inverse: false,
        looks_at: LooksAt::Flags,
        parameters: &[
            scale("scale", 65536.0),
            positive("growth_factor", 2.0),
            positive("backoff_factor", 0.5),
            count("growth_interval", 2000.0),
            optional("minimum_scale", FLT_MIN),
        ],
        new: flax::Flax::start,
    },
    ScalerSpec {
        name: "mxnet",
        aliases: &[],
        about: "MXNet contrib.amp: changes reach the loss one step late",
        source: "MXNet 1.9.1: mxnet/contrib/amp/loss_scaler.py",
        float: Float::F64,
        divides_by_new_scale: false,
        multiplies_by_inverse: false,
        looks_at: LooksAt::Flags,
        parameters: &[
            scale("init_scale", 65536.0),
            count("scale_window", 2000.0),
            scale("max_loss_scale", 16_777_216.0),
        ],
        new: mxnet::Mxnet::start,
    },
    ScalerSpec {
        name: "mindspore",
        aliases: &["mindspore-update-cell"],
        about: "DynamicLossScaleUpdateCell, which Model.train uses",
        source: "MindSpore 2.10.0: mindspore/nn/wrap/loss_scale.py",
        float: Float::F32,
        divides_by_new_scale: false,
        multiplies_by_inverse: false,
        looks_at: LooksAt::Flags,
        parameters: &[
            scale("init_loss_scale", 16_777_216.0),
            positive("scale_factor", 2.0),
            divisor("scale_window", 2000.0),
        ],
        new: mindspore::UpdateCell::start,
    },
    ScalerSpec {
        name: "mindspore-manager",
        aliases: &[],
        about: "DynamicLossScaleManager on the host",
        source: "MindSpore 2.10.0: mindspore/amp (loss_scale_manager.py)",
        float: Float::F64,
        divides_by_new_scale: false,
        multiplies_by_inverse: false,
        looks_at: LooksAt::Flags,
        parameters: &[
            scale("init_loss_scale", 16_777_216.0),
            positive("scale_factor", 2.0),
            divisor("scale_window", 2000.0),
        ],
        new: mindspore::Manager::start,
    },
    ScalerSpec {
        name: "mindspore-amp",
        aliases: &[],
        about: "mindspore.amp.DynamicLossScaler; no defaults upstream",
        source: "MindSpore 2.10.0: mindspore/amp.py",
        float: Float::F32,
        divides_by_new_scale: false,
        multiplies_by_inverse: false,
        looks_at: LooksAt::Flags,
        parameters: &[
            scale("scale_value", 16_777_216.0),
            positive("scale_factor", 2.0),
            divisor("scale_window", 2000.0),
        ],
        new: jmp::Jmp::mindspore,
    },
    ScalerSpec {
        name: "chainer",
        aliases: &[],
        about: "Optimizer.loss_scaling(): creeps up each step",
        source: "Chainer master: chainer/optimizer.py",
        float: Float::F64,
        divides_by_new_scale: false,
        multiplies_by_inverse: false,
        looks_at: LooksAt::Flags,
        parameters: &[
            scale("init_scale", 1.0),
            divisor("interval", 1000.0),
            number("min_scale", 1.0),
            number("max_scale", 65504.0),
        ],
        new: chainer::Chainer::start,
    },
    ScalerSpec {
        name: "onnxruntime",
        aliases: &["ort"],
        about: "ONNX Runtime training DynamicLossScaler",
        source: "ONNX Runtime 369de5c6: orttraining amp/loss_scaler.py",
        float: Float::F64,
        divides_by_new_scale: false,
        multiplies_by_inverse: false,
        looks_at: LooksAt::Flags,
        parameters: &[
            scale("loss_scale", 65536.0),
            count("up_scale_window", 2000.0),
            number("min_loss_scale", 1.0),
            scale("max_loss_scale", 16_777_216.0),
        ],
        new: keras::OnnxRuntime::start,
    },
    ScalerSpec {
        name: "cerebras",
        aliases: &[],
        about: "cerebras.pytorch.amp.GradScaler for float16",
        source: "cerebras_pytorch 2.10.0: amp/grad_scaler.py",
        float: Float::F32,
        divides_by_new_scale: false,
        multiplies_by_inverse: false,
        looks_at: LooksAt::Flags,
        parameters: &[
            scale("init_scale", 32768.0),
            count("steps_per_increase", 2000.0),
            number("min_loss_scale", 6.103_515_625e-5),
            scale("max_loss_scale", 32768.0),
            number("overflow_tolerance", 0.0),
        ],
        new: cerebras::Cerebras::start,
    },
    ScalerSpec {
        name: "openseq2seq-backoff",
        aliases: &["openseq2seq"],
        about: "OpenSeq2Seq AutomaticLossScaler, Backoff",
        source: "OpenSeq2Seq: optimizers/automatic_loss_scaler.py",
        float: Float::F32,
        divides_by_new_scale: false,
        multiplies_by_inverse: false,
        looks_at: LooksAt::Flags,
        parameters: &[
            positive("step_factor", 2.0),
            divisor("step_window", 2000.0),
            number("scale_min", 1.0),
            number("scale_max", 16384.0),
        ],
        new: openseq2seq::Backoff::start,
    },
    ScalerSpec {
        name: "openseq2seq-logmax",
        aliases: &[],
        about: "OpenSeq2Seq AutomaticLossScaler, LogMax: from the statistics of the largest gradient",
        source: "OpenSeq2Seq: optimizers/automatic_loss_scaler.py",
        float: Float::F32,
        divides_by_new_scale: false,
        multiplies_by_inverse: false,
        looks_at: LooksAt::Largest,
        parameters: &[
            number("log_max", 16.0),
            below_one("beta1", 0.99),
            below_one("beta2", 0.999),
            number("overflow_std_dev", 3.09),
            number("scale_min", 1.0),
            number("scale_max", 16384.0),
        ],
        new: openseq2seq::LogMax::start,
    },
    ScalerSpec {
        name: "als",
        aliases: &["graphcore"],
        about: "Graphcore automatic loss scaling: by the share of gradients above 2^13; no step is skipped",
        source: "PopART: automatic loss scaling transform; the rule was read and not run",
        float: Float::F32,
        divides_by_new_scale: false,
        multiplies_by_inverse: false,
        looks_at: LooksAt::Counts,
        parameters: &[
            scale("init_scale", 1.0),
            below_one("threshold_upper_count_proportion", 1e-7),
            divisor("update_period", 1.0),
        ],
        new: als::Als::start,
    },
];

/// The row called `name`, or by an alias of it.
///
/// # Errors
/// There is none; the error names those that are alike.
pub fn find(name: &str) -> Result<&'static ScalerSpec> {
    let lower = name.to_ascii_lowercase();
    let named = |spec: &&ScalerSpec| spec.name == lower || spec.aliases.contains(&&*lower);
    SCALERS.iter().find(named).ok_or_else(|| {
        let stem: String = lower.chars().take_while(|&c| c != '@' && c != '-').take(ALIKE).collect();
        let alike: Vec<&str> = SCALERS
            .iter()
            .map(|spec| spec.name)
            .filter(|known| known.starts_with(&stem) && !stem.is_empty())
            .collect();
        let hint = if alike.is_empty() { String::new() } else { format!("; there are {}", alike.join(", ")) };
        Error::new(format!("'{}' is no known scaler{hint}; --list shows all", escape(name)))
    })
}
