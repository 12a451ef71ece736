//! Policies that come with firn.

/// The presets: name and text, which is also where to begin a policy of one's own.
pub const PRESETS: [(&str, &str); 3] = [
    ("streaming", include_str!("presets/streaming.toml")),
    ("hourly", include_str!("presets/hourly.toml")),
    ("archive", include_str!("presets/archive.toml")),
];
