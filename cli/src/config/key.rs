//! The declaration of one setting.

/// What a setting holds, and so how its text is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Any text.
    Text,
    /// A path; a relative one counts from the working directory.
    Path,
    /// `true` or `false`.
    Bool,
    /// A whole number within these bounds, both included.
    Count(u64, u64),
    /// A size with a unit.
    Bytes,
    /// A duration with a unit.
    Duration,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Several texts.
    List,
    /// A table of texts that is passed on as it is.
    Properties,
}

impl Kind {
    /// How the kind is called in messages.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::Text => "a text",
            Self::Path => "a path",
            Self::Bool => "true or false",
            Self::Count(..) => "a whole number",
            Self::Bytes => "a size such as \"128 MiB\"",
            Self::Duration => "a duration such as \"5s\"",
            Self::Choice(_) => "one of a few words",
            Self::List => "a list of texts",
            Self::Properties => "a table of texts",
        }
    }
}

/// Whether a value may be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exposure {
    /// It may be printed.
    Plain,
    /// Properties of others: those whose names sound secret are masked, and passwords within URIs.
    MaskSecrets,
}

/// One setting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// `section.key`; a `*` stands for a name of the user's choice.
    pub path: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// The default as it would be written in the file, without quotes; absent where there is none.
    pub default: Option<&'static str>,
    /// What it does, for the default file and the schema.
    pub doc: &'static str,
    /// What follows from a wrong value: the end of the sentence "…, so …".
    pub consequence: &'static str,
    /// Whether it may be shown.
    pub exposure: Exposure,
    /// The flag of the commands that take it, where there is one, without the dashes.
    pub flag: Option<&'static str>,
}

impl Key {
    /// A setting without default.
    pub(crate) const fn new(path: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self {
            path,
            kind,
            default: None,
            doc,
            consequence: "nothing was started",
            exposure: Exposure::Plain,
            flag: None,
        }
    }

    /// With a flag on the command line.
    pub(crate) const fn flag(mut self, name: &'static str) -> Self {
        self.flag = Some(name);
        self
    }

    /// With a default, as it is written in the file.
    pub(crate) const fn or(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }

    /// With its own consequence of a wrong value.
    pub(crate) const fn so(mut self, consequence: &'static str) -> Self {
        self.consequence = consequence;
        self
    }

    /// With secrets masked whenever it is shown.
    pub(crate) const fn masked(mut self) -> Self {
        self.exposure = Exposure::MaskSecrets;
        self
    }

    /// Whether this declaration covers `path`: segment by segment, a `*` covering any one of them.
    pub(crate) fn covers(&self, path: &[String]) -> bool {
        let mut segments = self.path.split('.');
        path.iter().all(|own| segments.next().is_some_and(|declared| declared == "*" || declared == own))
            && segments.next().is_none()
    }
}
