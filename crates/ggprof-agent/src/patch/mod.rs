//! Changing pointers in libraries that are already loaded: finding the library,
//! finding its slots, writing one. What to put there is decided in `hooks`.

pub(crate) mod got;
pub(crate) mod loaded_object;
