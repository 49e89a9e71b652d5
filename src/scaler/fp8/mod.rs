//! Scales of FP8 recipes: which follow from the values at hand, which from the largest magnitudes of the steps
//! before, and what becomes of the latter over a run.
//!
//! Recipes that look at the values are block formats (`format::block`, `cast::block`); delayed scaling is a state
//! machine of its own ([`Delayed`]): amax in, scale out.

mod delayed;
mod recipe;
mod role;
mod trajectory;

pub use delayed::{AMAX_ALGOS, AmaxAlgo, Delayed, Kept, Settings, VARIANTS, Variant};
pub use recipe::{Elements, FORMATS, Kind, RECIPES, Recipe, find, find_format};
pub use role::{ACTIVATION, GRADIENT, ROLES, Role, Roles};
pub use trajectory::{Event, Moment, replay};
