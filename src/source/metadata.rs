//! What dumps say of themselves in metadata, under the names that tools use.

/// Keys of the training step, in lower case.
const STEPS: [&str; 4] = ["step", "global_step", "iteration", "iter"];
/// What the keys of a loss scale end with.
const SCALES: [&str; 2] = ["loss_scale", "grad_scale"];

/// The training step that `metadata` record.
pub fn recorded_step(metadata: &[(String, String)]) -> Option<u64> {
    STEPS.iter().find_map(|name| {
        let (_, value) = metadata.iter().find(|(key, _)| key.eq_ignore_ascii_case(name))?;
        value.trim().parse().ok()
    })
}

/// The loss scale that `metadata` record, positive and finite, and the key that it has there.
pub fn recorded_scale(metadata: &[(String, String)]) -> Option<(&str, f64)> {
    let is_scale = |key: &str| {
        let key = key.to_ascii_lowercase().replace(['-', '.', ' '], "_");
        SCALES.iter().any(|known| key.ends_with(known))
    };
    let (key, value) = metadata.iter().find(|(key, _)| is_scale(key))?;
    let scale = value.trim().parse().ok().filter(|scale: &f64| *scale > 0.0 && scale.is_finite())?;
    Some((key, scale))
}

#[cfg(test)]
mod tests {
    use super::{recorded_scale, recorded_step};

    fn metadata(key: &str, value: &str) -> [(String, String); 1] {
        [(key.to_owned(), value.to_owned())]
    }

    #[test]
    fn steps_and_scales_are_found_under_the_names_of_the_tools() {
        assert_eq!(recorded_step(&metadata("Global_Step", " 12 ")), Some(12));
        assert_eq!(recorded_step(&metadata("iteration", "7")), Some(7));
        assert_eq!(recorded_step(&metadata("steps_per_epoch", "7")), None);
        assert_eq!(recorded_step(&metadata("step", "-1")), None);
        assert_eq!(recorded_scale(&metadata("amp.loss-scale", "65536.0")), Some(("amp.loss-scale", 65536.0)));
        assert_eq!(recorded_scale(&metadata("loss_scale", "nan")), None);
        assert_eq!(recorded_scale(&metadata("loss_scale", "0")), None);
        assert_eq!(recorded_scale(&metadata("scale", "2")), None);
    }
}
