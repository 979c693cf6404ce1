/// The one change that does what `first` and then `second` do: the before-coordinates are those of `first`, the
/// after-coordinates those of `second`.
///
/// Added then deleted vanishes, added then updated is added, updated then deleted is deleted, moved and moved again is one
/// move, moved then deleted is a plain delete; a section that came and went is not mentioned. A row deleted by `first` and
/// added by `second` stays both, since positions do not tell that it is the same element.
///
/// The empty change is the identity. The composition is associative, except that a pair of `moves` (optional by nature) can be
/// missing when a row passed through a section that went later and the later changes were composed first: once the way out of
/// the section is a row of a deleted section it is not listed, and nothing is left to pair. Composing from the front keeps
/// every pair.
///
/// Both must be well formed, as `Change.validate` checks, and `second` must fit what `first` leaves.
/// O(size of the two changes), whatever the length of the feed.
public func compose(_ first: Change, _ second: Change) -> Change {
  if first.isEmpty { return second }
  if second.isEmpty { return first }
  if first.onlyUpdates && second.onlyUpdates {
    return Change(updated: mergeAscending(first.updated, second.updated))
  }
  return ChangeComposer(first, second).composed()
}

/// The ascending union of two ascending lists.
func mergeAscending<Value: Comparable>(_ left: [Value], _ right: [Value]) -> [Value] {
  if left.isEmpty { return right }
  if right.isEmpty { return left }
  var merged: [Value] = []
  merged.reserveCapacity(left.count + right.count)
  var i = 0
  var j = 0
  while i < left.count, j < right.count {
    if left[i] < right[j] {
      merged.append(left[i])
      i += 1
    } else {
      if left[i] == right[j] { i += 1 }
      merged.append(right[j])
      j += 1
    }
  }
  merged.append(contentsOf: left[i...])
  merged.append(contentsOf: right[j...])
  return merged
}
