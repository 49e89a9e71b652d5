//! One event of the file, read without building it: fields go to a scratch that is used again.
//!
//! Every reader here takes any JSON value, so that an odd event costs its own place and not the trace.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::types::{NO_FLOAT, Signature, TYPES};

/// The fields of an event that matter here.
#[derive(Default)]
pub(super) struct Event {
    /// Whether it has a beginning and an end in one event (`ph` is X).
    pub(super) complete: bool,
    pub(super) category: String,
    pub(super) name: String,
    /// Process and thread.
    pub(super) thread: String,
    /// In µs.
    pub(super) start: Option<f64>,
    /// In µs.
    pub(super) duration: Option<f64>,
    pub(super) external: Option<f64>,
    pub(super) correlation: Option<f64>,
    /// Whether the types of the inputs are there.
    pub(super) typed: bool,
    pub(super) signature: Signature,
    phase: String,
    text: String,
}

impl Event {
    /// Forgets the event that was read before.
    pub(super) fn clear(&mut self) {
        self.phase.clear();
        self.category.clear();
        self.name.clear();
        self.thread.clear();
        self.signature.clear();
        (self.complete, self.typed) = (false, false);
        (self.start, self.duration, self.external, self.correlation) = (None, None, None, None);
    }
}

/// Defines a reader of any JSON value: what it does with texts, numbers, lists and objects; the rest is nothing.
macro_rules! any_value {
    ($reader:ty, $($method:item)*) => {
        impl<'de> DeserializeSeed<'de> for $reader {
            type Value = ();
            fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
                from.deserialize_any(self)
            }
        }
        impl<'de> Visitor<'de> for $reader {
            type Value = ();
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }
            fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
                Ok(())
            }
            fn visit_unit<E: Error>(self) -> Result<(), E> {
                Ok(())
            }
            $($method)*
        }
    };
}

fn skip_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<(), A::Error> {
    while list.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

fn skip_object<'de, A: MapAccess<'de>>(mut object: A) -> Result<(), A::Error> {
    while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(())
}

/// An event, read into a cleared scratch; what is none leaves it so.
pub(super) struct EventSeed<'a>(pub(super) &'a mut Event);

any_value! { EventSeed<'_>,
    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> { Ok(()) }
    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> { Ok(()) }
    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> { Ok(()) }
    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> { Ok(()) }
    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<(), A::Error> { skip_list(list) }
    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let event = self.0;
        while let Some(key) = object.next_key_seed(KeySeed)? {
            match key {
                Key::Phase => object.next_value_seed(Text(&mut event.phase))?,
                Key::Category => object.next_value_seed(Text(&mut event.category))?,
                Key::Name => object.next_value_seed(Text(&mut event.name))?,
                Key::Thread => {
                    // The process comes with it; which of them comes first does not matter.
                    event.thread.push('/');
                    object.next_value_seed(Text(&mut event.thread))?;
                }
                Key::Start => object.next_value_seed(Number(&mut event.start))?,
                Key::Duration => object.next_value_seed(Number(&mut event.duration))?,
                Key::Args => object.next_value_seed(Args(event))?,
                _ => {
                    object.next_value::<IgnoredAny>()?;
                }
            }
        }
        event.complete = event.phase == "X";
        Ok(())
    }
}

/// What is said about an event.
struct Args<'a>(&'a mut Event);

any_value! { Args<'_>,
    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> { Ok(()) }
    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> { Ok(()) }
    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> { Ok(()) }
    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> { Ok(()) }
    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<(), A::Error> { skip_list(list) }
    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let event = self.0;
        while let Some(key) = object.next_key_seed(KeySeed)? {
            match key {
                Key::External => object.next_value_seed(Number(&mut event.external))?,
                Key::Correlation => object.next_value_seed(Number(&mut event.correlation))?,
                Key::InputTypes => {
                    event.typed = true;
                    event.signature.types.clear();
                    object.next_value_seed(InputTypes(&mut event.signature.types, &mut event.text))?;
                }
                Key::InputShapes => {
                    event.signature.extents.clear();
                    event.signature.ends.clear();
                    object.next_value_seed(InputShapes(&mut event.signature))?;
                }
                _ => {
                    object.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// The keys that matter, at both levels.
#[derive(Clone, Copy)]
enum Key {
    Phase,
    Category,
    Name,
    Thread,
    Start,
    Duration,
    Args,
    External,
    Correlation,
    InputTypes,
    InputShapes,
    Other,
}

struct KeySeed;

impl<'de> DeserializeSeed<'de> for KeySeed {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Key, D::Error> {
        from.deserialize_str(self)
    }
}

impl Visitor<'_> for KeySeed {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Key, E> {
        Ok(match key {
            "ph" => Key::Phase,
            "cat" => Key::Category,
            "name" => Key::Name,
            "pid" | "tid" => Key::Thread,
            "ts" => Key::Start,
            "dur" => Key::Duration,
            "args" => Key::Args,
            "External id" | "external id" => Key::External,
            "correlation" => Key::Correlation,
            "Input type" => Key::InputTypes,
            "Input Dims" | "Input dims" => Key::InputShapes,
            _ => Key::Other,
        })
    }
}

/// Appends a text, or a number as text.
struct Text<'a>(&'a mut String);

any_value! { Text<'_>,
    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.0.push_str(text);
        Ok(())
    }
    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> { append(self.0, &number) }
    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> { append(self.0, &number) }
    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> { append(self.0, &number) }
    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<(), A::Error> { skip_list(list) }
    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<(), A::Error> { skip_object(object) }
}

fn append<E: Error>(text: &mut String, number: &dyn fmt::Display) -> Result<(), E> {
    fmt::write(text, format_args!("{number}")).map_err(E::custom)
}

/// A number, or a text of one; NaN of any other text.
struct Number<'a>(&'a mut Option<f64>);

any_value! { Number<'_>,
    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        *self.0 = Some(text.parse().unwrap_or(f64::NAN));
        Ok(())
    }
    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        *self.0 = Some(number as f64);
        Ok(())
    }
    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        *self.0 = Some(number as f64);
        Ok(())
    }
    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        *self.0 = Some(number);
        Ok(())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<(), A::Error> { skip_list(list) }
    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<(), A::Error> { skip_object(object) }
}

/// The list of type names.
struct InputTypes<'a>(&'a mut Vec<u8>, &'a mut String);

any_value! { InputTypes<'_>,
    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> { Ok(()) }
    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> { Ok(()) }
    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> { Ok(()) }
    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> { Ok(()) }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Self(types, text) = self;
        loop {
            text.clear();
            if list.next_element_seed(Text(&mut *text))?.is_none() {
                return Ok(());
            }
            let known = TYPES.iter().position(|float| float.written == text.as_str());
            types.push(known.map_or(NO_FLOAT, |index| index as u8));
        }
    }
    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<(), A::Error> { skip_object(object) }
}

/// The list of shapes. A list of tensors has a list of shapes in its place, which is left out.
struct InputShapes<'a>(&'a mut Signature);

any_value! { InputShapes<'_>,
    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> { Ok(()) }
    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> { Ok(()) }
    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> { Ok(()) }
    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> { Ok(()) }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let signature = self.0;
        while list.next_element_seed(Extents(&mut signature.extents, true))?.is_some() {
            signature.ends.push(u32::try_from(signature.extents.len()).unwrap_or(u32::MAX));
        }
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<(), A::Error> { skip_object(object) }
}

/// The extents of one shape; an extent itself where the flag is off.
struct Extents<'a>(&'a mut Vec<u64>, bool);

any_value! { Extents<'_>,
    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> { Ok(()) }
    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> { Ok(()) }
    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        if !self.1 {
            self.0.push(number);
        }
        Ok(())
    }
    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> { Ok(()) }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        if !self.1 {
            return skip_list(list);
        }
        while list.next_element_seed(Extents(&mut *self.0, false))?.is_some() {}
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<(), A::Error> { skip_object(object) }
}
