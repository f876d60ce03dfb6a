//! The class of a failure in stored data. The type itself belongs to the protocol, which has another encoding.

use serde::de::{Deserialize, Deserializer, Error};
use serde::{Serialize, Serializer};
use toolexec_protocol::failure::ErrorClass;

const CLASSES: [ErrorClass; 3] = [ErrorClass::Transient, ErrorClass::Semantic, ErrorClass::Environment];

pub(super) fn serialize<S: Serializer>(class: &Option<ErrorClass>, serializer: S) -> Result<S::Ok, S::Error> {
    class.map(ErrorClass::as_str).serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ErrorClass>, D::Error> {
    let Some(name) = Option::<String>::deserialize(deserializer)? else {
        return Ok(None);
    };
    match CLASSES.into_iter().find(|class| class.as_str() == name) {
        Some(class) => Ok(Some(class)),
        None => Err(D::Error::unknown_variant(&name, &["transient", "semantic", "environment"])),
    }
}
