//! Metrics: statistics of a run by their names in studies.

use anabranch_lab::Measured;
use anabranch_lab::statistic::{Argument, Censoring, STATISTICS, Statistic};
use anabranch_scenario::Problem;
use anabranch_scenario::file::At;
use anabranch_units::suggest;

/// Metric: a statistic of a run that a study asks for.
#[derive(Clone, Debug)]
pub(crate) struct Metric {
    statistic: &'static Statistic,
    /// Index of the path.
    path: usize,
    /// Number of the window.
    window: usize,
    /// Argument as written.
    argument: String,
}

/// Returns the statistics that studies can ask for, by name.
pub(super) fn metrics() -> impl Iterator<Item = (&'static str, &'static Statistic)> {
    STATISTICS.iter().filter_map(|statistic| Some((statistic.metric?, statistic)))
}

impl Metric {
    /// Parses the metric that a study names, in a scenario with these paths.
    pub(crate) fn parse(at: &At<String>, paths: &[String]) -> Result<Metric, Problem> {
        let (name, argument) = at.value.split_once(':').unwrap_or((&at.value, ""));
        let (_, statistic) = metrics().find(|(known, _)| *known == name).ok_or_else(|| {
            let names: Vec<&str> = metrics().map(|(known, _)| known).collect();
            Problem::at(&at.span, format!("there is no metric `{name}`"), suggest(name, names))
        })?;
        let mut metric = Metric { statistic, path: 0, window: 0, argument: argument.to_owned() };
        let wrong = |accepted: &str| {
            let problem = format!("`{name}` takes {accepted}, and this is `{}`", at.value);
            Problem::at(&at.span, problem, format!("accepted: {}", example(name, statistic)))
        };
        let path = |name: &str| {
            let known: Vec<&str> = paths.iter().map(String::as_str).collect();
            let place = known.iter().position(|path| *path == name);
            place.ok_or_else(|| Problem::at(&at.span, format!("there is no path `{name}`"), suggest(name, known)))
        };
        let window = |text: &str| text.parse().map_err(|_| wrong("the number of a window"));
        match statistic.argument() {
            Argument::None if argument.is_empty() => {}
            Argument::None => return Err(wrong("no argument")),
            Argument::Path => metric.path = path(argument)?,
            Argument::Window => metric.window = window(argument)?,
            Argument::WindowPath => {
                let (number, name) = argument.split_once('/').ok_or_else(|| wrong("a window and a path"))?;
                (metric.window, metric.path) = (window(number)?, path(name)?);
            }
        }
        Ok(metric)
    }

    /// Returns its number in this run; `None` if the run has none.
    pub(crate) fn of(&self, measured: &Measured) -> Option<f64> {
        self.statistic.number(measured, self.window, self.path)
    }

    /// Returns its text in this run, for metrics that are texts.
    pub(super) fn text(&self, measured: &Measured) -> Option<String> {
        self.statistic.text(measured)
    }

    /// Returns the meaning of its number in a run in which transfers did not complete.
    pub(super) fn censoring(&self) -> Censoring {
        self.statistic.censoring
    }

    pub(crate) fn unit(&self) -> &'static str {
        self.statistic.metric_unit()
    }

    /// Describes it in words, with its argument.
    pub(crate) fn about(&self) -> String {
        match self.statistic.argument() {
            Argument::None => self.statistic.about.to_owned(),
            _ => format!("{} ({})", self.statistic.about, self.argument),
        }
    }
}

/// Formats a metric as studies write it.
fn example(name: &str, statistic: &Statistic) -> String {
    let argument = match statistic.argument() {
        Argument::None => return name.to_owned(),
        Argument::Path => "PATH",
        Argument::Window => "N",
        Argument::WindowPath => "N/PATH",
    };
    format!("{name}:{argument}")
}

/// Returns the unit of the metric of that name, with or without an argument.
pub(super) fn unit_of(text: &str) -> &'static str {
    let name = text.split(':').next().unwrap_or(text);
    metrics().find(|(known, _)| *known == name).map_or("", |(_, statistic)| statistic.metric_unit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<String, String> {
        let paths = ["wlan".to_owned(), "lte".to_owned()];
        let at = At { span: 0..text.len(), value: text.to_owned() };
        Metric::parse(&at, &paths).map(|metric| metric.about()).map_err(|problem| problem.problem)
    }

    /// Compares the rows behind `head` in a document with these; with `BLESS` set, writes them there.
    fn documented(document: &str, head: &str, rows: &str) {
        let path = format!("{}/../../{document}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).expect("the file is in the repository");
        let (before, behind) = text.split_once(head).expect("it has the table");
        let end = behind.find("\n\n").map_or(behind.len(), |at| at + 1);
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, format!("{before}{head}{rows}{}", &behind[end..])).expect("it can be written");
            return;
        }
        let remedy = "BLESS=1 cargo test -p anabranch-study --lib documentation";
        assert_eq!(&behind[..end], rows, "{document} is out of date; remedy: {remedy}");
    }

    fn or_dash(unit: &str) -> &str {
        if unit.is_empty() { "–" } else { unit }
    }

    #[test]
    fn the_columns_of_the_documentation_are_these() {
        let row = |Statistic { name, unit, about, .. }: &Statistic| {
            format!("| `{}` | {} | {about} |\n", name.replace("{}", "NAME"), or_dash(unit))
        };
        let rows: String = STATISTICS.iter().map(row).collect();
        documented("docs/results.md", "| column | unit | what it is |\n|---|---|---|\n", &rows);
    }

    #[test]
    fn the_metrics_of_the_documentation_are_these() {
        let row = |(name, statistic): (&str, &Statistic)| {
            let unit = or_dash(statistic.metric_unit());
            format!("| `{}` | {unit} | {} |\n", example(name, statistic), statistic.about)
        };
        let rows: String = metrics().map(row).collect();
        documented("docs/studies.md", "| metric | unit | what it is |\n|---|---|---|\n", &rows);
    }

    #[test]
    fn a_metric_takes_the_argument_that_it_has() {
        assert_eq!(parse("completion-time").as_deref(), Ok("completion time"));
        assert_eq!(parse("path-share:lte").as_deref(), Ok("share of the bytes first sent on the path (lte)"));
        assert_eq!(parse("path-share:lta"), Err("there is no path `lta`".to_owned()));
        assert_eq!(parse("goodput:lte"), Err("`goodput` takes no argument, and this is `goodput:lte`".to_owned()));
        assert_eq!(parse("goodness"), Err("there is no metric `goodness`".to_owned()));
    }
}
