use super::*;
use crate::config::sources;

fn file() -> Source {
    Source::File(PathBuf::from("firn.toml"))
}

fn resolve(toml: &str, environment: &[(&str, &str)]) -> Result<Settings, Problems> {
    let mut given = sources::from_toml(toml, &file()).unwrap();
    given.extend(sources::from_environment(
        environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
    ));
    Settings::resolve(given)
}

#[test]
fn all_problems_are_told_at_once_with_path_value_and_consequence() {
    let toml = "[write]\nflush-age = \"5 parsecs\"\nflush-bites = 7\nshards = 0\nmode = \"fast\"\n[kafka]\nbrokers = 9\n";
    let message = resolve(toml, &[("FIRN__WRITE__MEMORY", "1G")]).unwrap_err().to_string();
    let expected = [
        "the configuration has 6 problems",
        "`write.flush-age` = `5 parsecs`: `parsecs` is no unit of time; known are ns, us, ms, s, m, h, d, so rows would wait",
        "`write.flush-bites` = `7`: there is no such setting; did you mean `write.flush-bytes`?, so it would have no effect",
        "firn.toml: `write.shards` = `0`: 1 to 1024 is expected, so nothing was started",
        "`write.mode` = `fast`: one of fixed, auto, grouped, low-latency is expected",
        "`kafka.brokers` = `9`: a text is expected, so no broker can be reached",
        "FIRN__WRITE__MEMORY: `write.memory` = `1G`: `G` can mean GiB (1024) or GB (1000)",
    ];
    for part in expected {
        assert!(message.contains(part), "`{part}` is not in:\n{message}");
    }
}

#[test]
fn later_sources_win() {
    let toml = "[write]\nflush-age = \"2s\"\nmemory = \"64 MiB\"\n";
    let environment = [("FIRN__WRITE__FLUSH_AGE", "3s"), ("UNRELATED", "x")];
    let settings = resolve(toml, &environment).unwrap();
    assert_eq!(settings.duration("write.flush-age"), Some(Duration::from_secs(3)));
    assert_eq!(settings.number("write.memory"), Some(64 << 20));
    assert_eq!(settings.number("write.shards"), Some(1));
    let given = [sources::from_flag("write.flush-age", "--flush-age", "4s")];
    let flagged = Settings::resolve(given).unwrap();
    assert_eq!(flagged.duration("write.flush-age"), Some(Duration::from_secs(4)));
}

#[test]
fn properties_of_several_sources_are_united() {
    let toml = "[kafka.properties]\n\"client.id\" = \"a\"\n\"security.protocol\" = \"plaintext\"\n";
    let environment = [("FIRN__KAFKA__PROPERTIES__SECURITY_PROTOCOL", "ssl")];
    let properties = resolve(toml, &environment).unwrap().properties("kafka.properties");
    assert_eq!(properties["client.id"], "a");
    assert_eq!(properties["security.protocol"], "ssl");
}

#[test]
fn names_of_the_users_choice_may_hold_dots() {
    let toml = "[decode.columns.\"o.a\"]\nbinary = \"hex\"\n[catalogs.prod]\nuri = \"sqlite:x\"\n";
    let settings = resolve(toml, &[]).unwrap();
    assert_eq!(settings.names(&["decode", "columns"]).into_iter().collect::<Vec<_>>(), ["o.a"]);
    assert_eq!(settings.text("decode.columns.o.a.binary"), Some("hex"));
    assert_eq!(settings.names(&["catalogs"]).into_iter().collect::<Vec<_>>(), ["prod"]);
}

#[test]
fn a_secret_does_not_stand_in_the_message_about_it() {
    let message =
        resolve("[catalogs.prod]\nuri = 7\nproperties = \"hunter2\"\n", &[]).unwrap_err().to_string();
    assert!(message.contains("`catalogs.prod.properties`: a table of texts is expected"), "{message}");
    assert!(!message.contains("hunter2"), "{message}");
}

#[test]
fn text_that_is_no_toml_is_one_problem() {
    let problem = sources::from_toml("[write\nmode", &file()).unwrap_err();
    assert!(problem.to_string().starts_with("firn.toml: this is not TOML: "), "{problem}");
}
