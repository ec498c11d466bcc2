//! The rows by key, the index of open work, and the requests that the store makes.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use serde_json::{Map, Value, json};

use super::units::{self, Units};

/// A page of a Query ends with the item that exceeds this size (API reference, Query).
const PAGE_BYTES: u64 = 1 << 20;

/// Attribute of a record with the newest entries of its history.
const HISTORY: &str = "history";

/// Partition key of the index, and the attributes that it contains (infra/control-plane.yaml).
const INDEX: &str = "open";
const DUE: &str = "due";
const PROJECTED: [&str; 5] = ["pk", "sk", INDEX, DUE, "job"];

/// An error as DynamoDB reports it.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) code: &'static str,
    pub(super) message: String,
}

type Answer = Result<Value, Refusal>;
type Item = Map<String, Value>;
/// Partition and sort key.
type Key = (String, String);

/// The table.
#[derive(Debug, Default)]
pub(super) struct Rows {
    items: BTreeMap<Key, Item>,
    /// The index: partition, sort key, and key of the item.
    open: BTreeSet<(String, String, Key)>,
    /// State of each record, from its newest audit entry.
    states: BTreeMap<Key, String>,
}

impl Refusal {
    pub(super) fn unknown(what: &str) -> Self {
        let message = format!("this table does not know {what:?}");
        Self { code: "ValidationException", message }
    }
}

impl Rows {
    pub(super) fn get(&self, request: &Value, units: &mut Units) -> Answer {
        let found = self.items.get(&key(&request["Key"])?);
        units.reads += units::read(found.map_or(0, units::size), request["ConsistentRead"] == true);
        Ok(found.map_or_else(|| json!({}), |item| json!({ "Item": item })))
    }

    pub(super) fn query(&self, request: &Value, units: &mut Units) -> Answer {
        let value = |name: &str| text(&request["ExpressionAttributeValues"][name]);
        let condition = request["KeyConditionExpression"].as_str().unwrap_or_default();
        match (request["IndexName"].as_str(), condition) {
            (None, "pk = :pk AND begins_with(sk, :prefix)") => {
                let (pk, prefix) = (value(":pk")?, value(":prefix")?);
                let after = match &request["ExclusiveStartKey"] {
                    Value::Null => Bound::Included((pk.clone(), prefix.clone())),
                    start => Bound::Excluded(key(start)?),
                };
                let found = self.items.range((after, Bound::Unbounded));
                let found = found.take_while(|((of, sk), _)| *of == pk && sk.starts_with(&prefix));
                page(request, found.map(|(_, item)| item.clone()), units)
            }
            (None, "pk = :pk AND sk BETWEEN :first AND :last") => {
                let (pk, first, last) = (value(":pk")?, value(":first")?, value(":last")?);
                let after = match &request["ExclusiveStartKey"] {
                    Value::Null => Bound::Included((pk.clone(), first)),
                    start => Bound::Excluded(key(start)?),
                };
                let found = self.items.range((after, Bound::Included((pk, last))));
                page(request, found.map(|(_, item)| item.clone()), units)
            }
            (Some(INDEX), "#open = :open" | "#open = :open AND sk = :sweep") => {
                let open = value(":open")?;
                let only = if condition.ends_with(":sweep") { Some(value(":sweep")?) } else { None };
                let first = (open.clone(), String::new(), Key::default());
                let after = match &request["ExclusiveStartKey"] {
                    Value::Null => Bound::Included(first),
                    start => Bound::Excluded((open.clone(), text(&start["sk"])?, key(start)?)),
                };
                let found = self.open.range((after, Bound::Unbounded)).take_while(|(of, ..)| *of == open);
                let found = found.filter(|(_, sk, _)| only.as_ref().is_none_or(|only| only == sk));
                let found = found.filter_map(|(_, _, key)| self.items.get(key).map(projected));
                page(request, found, units)
            }
            (_, condition) => Err(Refusal::unknown(condition)),
        }
    }

    /// Copies the first items with a prefix to the indexes after them. If an item does not exist, the next one is
    /// copied.
    pub(super) fn repeat(&mut self, pk: &str, prefix: &str, written: u32, all: u32) {
        let key = |number: u32| (pk.to_owned(), format!("{prefix}{number:06}"));
        for number in written..all {
            let (pk, sk) = key(number);
            let (_, copied) = self.items.range(key(number % written)..).next().expect("one is there");
            let mut item = copied.clone();
            item.insert("sk".to_owned(), json!({ "S": sk }));
            self.items.insert((pk, sk), item);
        }
    }

    /// Puts one item if its condition holds.
    pub(super) fn put(&mut self, request: &Value, units: &mut Units) -> Answer {
        let (key, item) = wanted(request)?;
        let size = self.size(&key, &item);
        *kind(&key, units) += units::write(size);
        if !self.holds(&key, request)? {
            let (code, message) = ("ConditionalCheckFailedException", "The conditional request failed".to_owned());
            return Err(Refusal { code, message });
        }
        self.note(&key, &item, units);
        self.replace(&key, item, units);
        Ok(json!({}))
    }

    /// The size by which a put is billed: the larger one of the old and the new item (developer guide, "DynamoDB read
    /// and write operations").
    fn size(&self, key: &Key, item: &Item) -> u64 {
        units::size(item).max(self.items.get(key).map_or(0, units::size))
    }

    fn holds(&self, key: &Key, put: &Value) -> Result<bool, Refusal> {
        let held = self.items.get(key);
        let has = |name: &str, value: &str| {
            held.is_some_and(|held| held.get(name) == Some(&put["ExpressionAttributeValues"][value]))
        };
        match put["ConditionExpression"].as_str() {
            None => Ok(true),
            Some("attribute_not_exists(pk) OR mark = :mark") => Ok(held.is_none() || has("mark", ":mark")),
            Some("attribute_not_exists(pk) OR version < :version") => {
                let number = |value: &Value| value["N"].as_str().and_then(|number| number.parse::<u64>().ok());
                let newer = number(&put["ExpressionAttributeValues"][":version"]);
                Ok(held.is_none_or(|held| held.get("version").and_then(number) < newer))
            }
            Some("version = :held OR mark = :mark") => Ok(has("version", ":held") || has("mark", ":mark")),
            Some(condition) => Err(Refusal::unknown(condition)),
        }
    }

    /// Counts the changes, and those that change the record's state. The audit entry of a change shows the state.
    fn note(&mut self, key: &Key, item: &Item, units: &mut Units) {
        let Some(version) = item.get("version").and_then(|version| version["N"].as_str()) else { return };
        if !item.contains_key("record") {
            return;
        }
        units.changes += 1.0;
        let Some(entry) = item.get(HISTORY).and_then(|history| history["M"].get(version)) else { return };
        let state = entry["M"]["state"]["S"].as_str().unwrap_or_default().to_owned();
        let before = self.states.insert(key.clone(), state.clone());
        if before.is_none_or(|before| before != state) {
            let bare: Item = item.clone().into_iter().filter(|(name, _)| name != HISTORY).collect();
            units.moves += 1.0;
            units.least += units::write(units::size(&bare));
        }
    }

    fn replace(&mut self, key: &Key, item: Item, units: &mut Units) {
        let after = entry(key, &item);
        let entry_of = |item: &Item| units::write(units::size(&projected(item)));
        let before = self.items.insert(key.clone(), item);
        let was = before.as_ref().and_then(|item| entry(key, item));
        let item = self.items.get(key).map(projected).unwrap_or_default();
        if was != after {
            // If the key of an index entry changes, the entry is deleted and put again (developer guide, "Using Global
            // Secondary Indexes").
            units.index += was.as_ref().map_or(0.0, |_| before.as_ref().map_or(0.0, entry_of));
            units.index += after.as_ref().map_or(0.0, |_| entry_of(&item));
        } else if after.is_some() && before.as_ref().map(projected) != Some(item.clone()) {
            units.index += entry_of(&item);
        }
        was.map(|was| self.open.remove(&was));
        self.open.extend(after);
    }
}

/// Key and item of a put.
fn wanted(put: &Value) -> Result<(Key, Item), Refusal> {
    let item = put["Item"].as_object().ok_or_else(|| Refusal::unknown("a write that is no Put"))?;
    Ok((key(&put["Item"])?, item.clone()))
}

/// The item's place in the index, if it has one.
fn entry(key: &Key, item: &Item) -> Option<(String, String, Key)> {
    Some((text(item.get(INDEX)?).ok()?, key.1.clone(), key.clone()))
}

/// The attributes of an item that the index contains.
fn projected(item: &Item) -> Item {
    let kept = item.iter().filter(|(name, _)| PROJECTED.contains(&name.as_str()));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn page(request: &Value, found: impl Iterator<Item = Item>, units: &mut Units) -> Answer {
    let (mut items, mut bytes) = (Vec::new(), 0);
    let mut found = found.peekable();
    while let Some(item) = found.next_if(|_| bytes < PAGE_BYTES) {
        bytes += units::size(&item);
        items.push(item);
    }
    let mut answer = json!({ "ScannedCount": items.len() });
    if let (Some(_), Some(last)) = (found.peek(), items.last()) {
        let of_index = request["IndexName"].is_string();
        let is_key = |name: &str| matches!(name, "pk" | "sk") || (of_index && name == INDEX);
        let key = last.iter().filter(|(name, _)| is_key(name));
        answer["LastEvaluatedKey"] = key.map(|(name, value)| (name.clone(), value.clone())).collect::<Item>().into();
    }
    // DynamoDB bills what is read, whether the filter lets it pass or not.
    units.reads += units::read(bytes, request["ConsistentRead"] == true);
    match request["FilterExpression"].as_str() {
        None => {}
        Some("due <= :now") => {
            let now = text(&request["ExpressionAttributeValues"][":now"])?;
            items.retain(|item| item.get(DUE).and_then(|due| text(due).ok()).is_some_and(|due| due <= now));
        }
        Some(filter) => return Err(Refusal::unknown(filter)),
    }
    if let Some(only) = request["ExpressionAttributeNames"]["#only"].as_str() {
        items.iter_mut().for_each(|item| item.retain(|name, _| name == only));
    }
    answer["Count"] = items.len().into();
    answer["Items"] = items.into();
    Ok(answer)
}

/// The counter for a row's write units.
fn kind<'a>((pk, sk): &Key, units: &'a mut Units) -> &'a mut f64 {
    if pk.starts_with("RES#") {
        &mut units.pointers
    } else if sk.starts_with("LOG#") {
        &mut units.audits
    } else {
        &mut units.records
    }
}

fn key(item: &Value) -> Result<Key, Refusal> {
    Ok((text(&item["pk"])?, text(&item["sk"])?))
}

fn text(value: &Value) -> Result<String, Refusal> {
    value["S"].as_str().map(str::to_owned).ok_or_else(|| Refusal::unknown("a key that is no text"))
}
