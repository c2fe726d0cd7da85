//! From a line to a statement. Every refusal says where, what, and what would be right.

use crate::error::ScriptError;
use crate::names::{FIELDS, OPTIONS, STATEMENTS};
use crate::statement::{Action, Compare, Field, OptionText, SegmentText, Statement, When};
use crate::text::{Line, Word};
use crate::value;
use anabranch_engine::Event;
use anabranch_units::Duration;
use anabranch_units::suggest;
use std::net::{IpAddr, SocketAddr};

/// Control bits by letter, as packetdrill writes them; `A` is AE, the last of the bits that are otherwise reserved.
pub(crate) const FLAGS: &str = "SFRPUEWA.";

/// The statement on `line`.
pub(crate) fn parse(line: &Line) -> Result<Statement, ScriptError> {
    let words = line.words().map_err(|at| {
        ScriptError::refused(line, &at, "a parenthesis is not closed, or not opened", "add the other one")
    })?;
    Parser { line, words: &words, next: 0 }.statement()
}

struct Parser<'a> {
    line: &'a Line,
    words: &'a [Word],
    next: usize,
}

impl<'a> Parser<'a> {
    fn statement(mut self) -> Result<Statement, ScriptError> {
        let when = self.when()?;
        let first = self.word("a statement")?;
        // A segment is told by its second word, since its first is the name of a subflow, which may be that of a
        // statement.
        if let Some(direction) = self.words.get(self.next).filter(|word| word.text == "<" || word.text == ">") {
            self.next += 1;
            let segment = self.segment()?;
            let subflow = first.text.clone();
            let action = match direction.text.as_str() {
                "<" => Action::Inject { subflow, segment },
                _ => Action::Expect { subflow, segment },
            };
            return Ok(Statement { when, action });
        }
        let action = match first.text.as_str() {
            "host" => Action::Host(self.fields()?),
            "peer" => Action::Peer(self.fields()?),
            "subflow" => self.subflow()?,
            "listen" => Action::Listen(self.number("a port", "listen 80")?),
            "open" => Action::Open(self.word("a subflow")?.text.clone()),
            "write" => {
                let bytes: u64 = self.number("bytes", "write 1000")?;
                let takes = if self.eat("takes") { self.number("bytes", "write 1000 takes 500")? } else { bytes };
                Action::Write { bytes, takes, on: self.on()? }
            }
            "read" => Action::Read { bytes: self.number("bytes", "read 1000")?, on: self.on()? },
            "shutdown" => Action::Shutdown { on: self.on()? },
            "abort" => Action::Abort { on: self.on()? },
            "close" => Action::CloseSubflow(self.word("a subflow")?.text.clone()),
            "backup" => {
                let name = self.word("a subflow")?.text.clone();
                Action::Backup(name, self.choice(&[("on", true), ("off", false)])?)
            }
            "carrier" => {
                let address = self.address()?;
                Action::Carrier(address, self.choice(&[("up", true), ("down", false)])?)
            }
            "event" => self.event(false)?,
            "no" => {
                let word = self.word("`event`")?;
                if word.text != "event" {
                    return Err(self.refuse(word, "`no` goes before `event`", "write: no event fallback"));
                }
                self.event(true)?
            }
            "check" => self.check()?,
            "nothing" => Action::Nothing,
            "drain" => {
                let range = self.words.get(self.next);
                let (least, most) = match range {
                    None => (0, i128::MAX),
                    Some(word) => {
                        self.next += 1;
                        let help = "write: drain, drain 3 or drain 1..10";
                        value::range(&word.text).ok_or_else(|| self.refuse(word, "not a number of segments", help))?
                    }
                };
                Action::Drain { least, most }
            }
            other => {
                let names = STATEMENTS.iter().map(|(name, _)| *name);
                let help = format!("SUBFLOW < SEGMENT, SUBFLOW > SEGMENT, or one of these; {}", suggest(other, names));
                return Err(self.refuse(first, format!("`{other}` is not a statement"), help));
            }
        };
        if let Some(word) = self.words.get(self.next) {
            let example = STATEMENTS.iter().find(|(name, _)| *name == first.text).map_or("", |(_, example)| example);
            return Err(self.refuse(word, "this word is not expected", format!("for example: {example}")));
        }
        Ok(Statement { when, action })
    }

    fn refuse(&self, word: &Word, problem: impl Into<String>, help: impl Into<String>) -> ScriptError {
        ScriptError::refused(self.line, &word.at, problem, help)
    }

    fn word(&mut self, what: &str) -> Result<&'a Word, ScriptError> {
        let word = self.words.get(self.next);
        self.next += 1;
        word.ok_or_else(|| {
            let (first, end) = (self.words.first().map_or("", |word| &word.text), self.line.text.len());
            let example = STATEMENTS.iter().find(|(name, _)| *name == first).map_or("a < P. data=1:1001", |(_, e)| e);
            ScriptError::refused(
                self.line,
                &(end..end),
                format!("{what} is missing"),
                format!("for example: {example}"),
            )
        })
    }

    fn eat(&mut self, text: &str) -> bool {
        let there = self.words.get(self.next).is_some_and(|word| word.text == text);
        self.next += usize::from(there);
        there
    }

    fn number<T: TryFrom<i128>>(&mut self, what: &str, example: &str) -> Result<T, ScriptError> {
        let word = self.word(what)?;
        let number = value::number(&word.text).and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| self.refuse(word, format!("{what} expected"), format!("for example: {example}")))
    }

    fn choice<T: Copy>(&mut self, choices: &[(&str, T)]) -> Result<T, ScriptError> {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let word = self.word(&names.join(" or "))?;
        let choice = choices.iter().find(|(name, _)| *name == word.text).map(|(_, choice)| *choice);
        choice.ok_or_else(|| self.refuse(word, format!("`{}`", word.text), format!("accepted: {}", names.join(", "))))
    }

    fn address(&mut self) -> Result<IpAddr, ScriptError> {
        let word = self.word("an address")?;
        word.text.parse().map_err(|_| self.refuse(word, "not an address", "for example: 10.1.0.1 or fd00::1"))
    }

    fn on(&mut self) -> Result<Option<String>, ScriptError> {
        Ok(if self.eat("on") { Some(self.word("a connection's first subflow")?.text.clone()) } else { None })
    }

    /// `+10ms`, `+10ms..1s`, `@2s`.
    fn when(&mut self) -> Result<Option<When>, ScriptError> {
        let Some(word) = self.words.first().filter(|word| word.text.starts_with(['+', '@'])) else { return Ok(None) };
        self.next += 1;
        let text = &word.text[1..];
        let (low, high) = text.split_once("..").unwrap_or((text, text));
        let span: Option<(Duration, Duration)> = value::duration(low).zip(value::duration(high));
        let Some((low, high)) = span.filter(|(low, high)| low <= high) else {
            return Err(self.refuse(word, "not a time", "for example: +10ms, +200ms..400ms or @1.5s"));
        };
        Ok(Some(if word.text.starts_with('+') { When::After(low, high) } else { When::At(low, high) }))
    }

    fn fields(&mut self) -> Result<Vec<Field>, ScriptError> {
        let mut fields = Vec::new();
        while let Some(word) = self.words.get(self.next) {
            self.next += 1;
            fields.push(field(&word.text, word.at.start));
        }
        Ok(fields)
    }

    /// `subflow NAME host ADDRESS:PORT peer ADDRESS:PORT [join=NAME] [isn=N]`
    fn subflow(&mut self) -> Result<Action, ScriptError> {
        let name = self.word("a name")?.text.clone();
        let (mut host, mut peer) = (None, None);
        let help = "write: subflow a host 10.1.0.1:80 peer 10.0.0.1:4000, with `*` for a port that the host chooses";
        for _ in 0..2 {
            let side = self.word("`host` and `peer`")?;
            let word = self.word("an address and a port")?;
            match side.text.as_str() {
                "host" => {
                    let chosen = word.text.strip_suffix(":*").and_then(|ip| {
                        ip.trim_start_matches('[').trim_end_matches(']').parse().ok().map(|ip: IpAddr| (ip, None))
                    });
                    let given = word.text.parse::<SocketAddr>().ok().map(|at| (at.ip(), Some(at.port())));
                    host = chosen.or(given);
                    if host.is_none() {
                        return Err(self.refuse(word, "not an address and a port", help));
                    }
                }
                "peer" => {
                    let at = word.text.parse::<SocketAddr>();
                    peer = Some(at.map_err(|_| self.refuse(word, "not an address and a port", help))?);
                }
                _ => return Err(self.refuse(side, format!("`{}` is neither `host` nor `peer`", side.text), help)),
            }
        }
        let (Some(host), Some(peer)) = (host, peer) else {
            return Err(self.refuse(&self.words[0], "both `host` and `peer` are needed", help));
        };
        let mut fields = self.fields()?;
        if let Some(wrong) = fields.iter().find(|f| !["join", "isn", "nonce"].contains(&f.name.as_str())) {
            let help = suggest(&wrong.name, ["join", "isn", "nonce"]);
            return Err(ScriptError::refused(self.line, &wrong.at, format!("`{}` is unknown here", wrong.name), help));
        }
        let join = fields.iter().position(|field| field.name == "join").and_then(|at| fields.remove(at).value);
        Ok(Action::Subflow { name, host, peer, join, fields })
    }

    fn event(&mut self, absent: bool) -> Result<Action, ScriptError> {
        let mut words = vec![self.word("an event")?.text.clone()];
        while let Some(word) = self.words.get(self.next).filter(|word| word.text != "on") {
            self.next += 1;
            words.push(word.text.clone());
        }
        if !Event::NAMES.contains(&words[0].as_str()) {
            let word = &self.words[self.next - words.len()];
            let help = suggest(&words[0], Event::NAMES.iter().copied());
            return Err(self.refuse(word, format!("`{}` is not an event", words[0]), help));
        }
        Ok(Action::Event { words, absent, on: self.on()? })
    }

    fn check(&mut self) -> Result<Action, ScriptError> {
        let name = self.word("what to check")?;
        let compare = self.choice(&[
            ("=", Compare::Equal),
            ("!=", Compare::Unequal),
            ("<", Compare::Less),
            ("<=", Compare::AtMost),
            (">", Compare::More),
            (">=", Compare::AtLeast),
        ])?;
        let value = self.word("a value")?.text.clone();
        Ok(Action::Check { name: name.text.clone(), compare, value, on: self.on()?, at: name.at.clone() })
    }

    fn segment(&mut self) -> Result<SegmentText, ScriptError> {
        let flags = self.word("control bits")?;
        let good = flags.text == "-" || flags.text.chars().all(|c| FLAGS.contains(c));
        if !good {
            let help =
                "S SYN, F FIN, R RST, P PSH, . ACK, U URG, E ECE, W CWR, A AE, - none; for example S. for SYN and ACK";
            return Err(self.refuse(flags, format!("`{}` is not a set of control bits", flags.text), help));
        }
        let mut segment = SegmentText { flags: flags.text.clone(), ..SegmentText::default() };
        while let Some(word) = self.words.get(self.next) {
            self.next += 1;
            let (name, arguments) = match word.text.split_once('(') {
                Some((name, rest)) => (name, rest.strip_suffix(')')),
                None => (word.text.as_str(), None),
            };
            match OPTIONS.iter().find(|(option, _)| *option == name) {
                Some((_, accepted)) => {
                    let start = word.at.start + name.len() + 1;
                    segment.options.push(self.option(word, name, arguments.unwrap_or(""), start, accepted)?);
                }
                None => {
                    let field = field(&word.text, word.at.start);
                    if !FIELDS.contains(&field.name.as_str()) {
                        let names = FIELDS.iter().copied().chain(OPTIONS.iter().map(|(name, _)| *name));
                        let problem = format!("`{}` is neither a field nor an option", field.name);
                        return Err(self.refuse(word, problem, suggest(&field.name, names)));
                    }
                    segment.fields.push(field);
                }
            }
        }
        Ok(segment)
    }

    fn option(
        &self,
        word: &Word,
        name: &str,
        arguments: &str,
        start: usize,
        accepted: &[&str],
    ) -> Result<OptionText, ScriptError> {
        let mut args: Vec<Field> = Vec::new();
        let mut at = start;
        for piece in arguments.split([',', ' ']) {
            let begin = at;
            at += piece.len() + 1;
            if piece.is_empty() {
                continue;
            }
            let arg = field(piece, begin);
            // `remove_addr(1, 2)` names identifiers only.
            if name == "remove_addr" && arg.value.is_none() && value::number(piece).is_some() {
                match args.iter_mut().find(|field| field.name == "ids") {
                    Some(Field { value: Some(ids), .. }) => *ids += &format!("+{piece}"),
                    _ => args.push(Field { name: "ids".to_owned(), value: Some(piece.to_owned()), at: arg.at }),
                }
                continue;
            }
            if !accepted.contains(&arg.name.as_str()) {
                let problem = format!("`{}` is not an argument of {name}", arg.name);
                return Err(ScriptError::refused(
                    self.line,
                    &arg.at,
                    problem,
                    suggest(&arg.name, accepted.iter().copied()),
                ));
            }
            args.push(arg);
        }
        Ok(OptionText { name: name.to_owned(), args, at: word.at.clone() })
    }
}

fn field(text: &str, start: usize) -> Field {
    let at = start..start + text.len();
    // `option(30, 00 11)` keeps what is in its parentheses as its value.
    if let Some((name, rest)) = text.split_once('(')
        && !name.contains('=')
        && let Some(inner) = rest.strip_suffix(')')
    {
        return Field { name: name.to_owned(), value: Some(inner.to_owned()), at };
    }
    match text.split_once('=') {
        Some((name, value)) => Field { name: name.to_owned(), value: Some(value.to_owned()), at },
        None => Field { name: text.to_owned(), value: None, at },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Source;

    fn parsed(text: &str) -> Result<Statement, ScriptError> {
        let source = Source { name: "t".into(), text: text.into() };
        parse(&Line { source, number: 1, start: 0, text: text.to_owned(), verbatim: true })
    }

    #[test]
    fn a_segment_line() {
        let statement = parsed("+10ms..20ms a < P. seq=1 data=1:1001 dss(ack=1, map) option(30, 00 11)").expect("good");
        assert_eq!(statement.when, Some(When::After(Duration::from_millis(10), Duration::from_millis(20))));
        let Action::Inject { subflow, segment } = statement.action else { panic!("a segment comes in") };
        assert_eq!((subflow.as_str(), segment.flags.as_str(), segment.fields.len()), ("a", "P.", 3));
        assert_eq!(segment.fields[2].value.as_deref(), Some("30, 00 11"));
        assert_eq!(segment.options[0].args[1], Field { name: "map".to_owned(), value: None, at: 48..51 });
    }

    #[test]
    fn refusals_say_what_would_be_right() {
        for (text, problem, help) in [
            ("a < SX", "not a set of control bits", "S SYN"),
            ("a < S mp_capabel", "neither a field nor an option", "did you mean `mp_capable`"),
            ("a < . dss(acc=1)", "not an argument of dss", "did you mean `ack`"),
            ("lissten 80", "not a statement", "did you mean `listen`"),
            ("listen http", "a port expected", "listen 80"),
            ("listen", "a port is missing", "listen 80"),
            ("listen 80 81", "is not expected", "listen 80"),
            ("+5 nothing", "not a time", "+10ms"),
            ("event fallbak", "not an event", "did you mean `fallback`"),
            ("subflow a host 10.0.0.1 peer 10.0.0.2:1", "not an address and a port", "subflow a host"),
            ("check x ~ 3", "`~`", "accepted: =, !="),
        ] {
            let Err(ScriptError::Refused(refused)) = parsed(text) else { panic!("{text} was accepted") };
            assert!(refused.to_string().contains(problem), "{text}: {refused}");
            assert!(refused.advice().is_some_and(|text| text.contains(help)), "{text}: {:?}", refused.advice());
        }
    }
}
