//! The event schema in CDDL (RFC 8610), as the main document asks for it: data types that extend `$ProtocolEventData`,
//! each with a socket for extensions.

use super::{Described, Field, NAMESPACE, SCHEMA, events};

/// Returns the event schema. It uses the types of the main document.
pub fn cddl() -> String {
    let events = events();
    let mut text = format!(
        "; Events of Anabranch for qlog. They extend the types of draft-ietf-quic-qlog-main-schema.\n; Namespace: \
         {NAMESPACE}\n; Event schema URI: {SCHEMA}\n\n"
    );
    let types: Vec<String> = events.iter().map(type_of).collect();
    text += &format!("$ProtocolEventData /= {}\n", types.join(" /\n                       "));
    for (event, of) in events.iter().zip(&types) {
        let socket = event.name.replace(':', "-").replace('_', "");
        let fields = fields(&event.fields, 1);
        text += &format!("\n; {}: {}\n{of} = {{\n{fields}    * $${socket}-extension\n}}\n", event.name, event.about);
    }
    text
}

/// Returns the name of the type of an event's data: `anabranch:packet_sent` gives `AnabranchPacketSent`.
fn type_of(event: &Described) -> String {
    let words = event.name.split([':', '_']).map(|word| {
        let (first, rest) = word.split_at(word.len().min(1));
        format!("{}{rest}", first.to_uppercase())
    });
    words.collect()
}

fn fields(all: &[Field], depth: usize) -> String {
    let indent = "    ".repeat(depth);
    let field = |it: &Field| {
        let kind = match it.fields.is_empty() {
            true => it.kind.clone(),
            false => format!("{{\n{}{indent}}}", fields(&it.fields, depth + 1)),
        };
        format!("{indent}{}{}: {kind}\n", if it.optional { "? " } else { "" }, it.name)
    };
    all.iter().map(field).collect()
}
