import FeedModel

/// Collections: every bin judges every element.
extension TreeReference {
  mutating func update(_ name: String, _ elements: [TreeElement]) throws(Refusal) {
    var feed = try feed(name, \.hasIdentity)
    if feed.list != nil { return try updateArray(&feed, elements) }
    for element in elements { try update(&feed, element) }
    evict(&feed)
    feeds[name] = feed
  }

  mutating func delete(_ name: String, _ ids: [Int]) throws(Refusal) {
    var feed = try feed(name, \.hasIdentity)
    try checkEditable(feed)
    for id in ids { feed.remove(id) }
    feeds[name] = feed
  }

  mutating func delete(_ name: String, v: Int) throws(Refusal) {
    var feed = try feed(name, \.hasIdentity)
    try checkEditable(feed)
    feed.items.removeAll { $0.element.v == v }
    for (id, entry) in feed.elements where entry.element.v == v { feed.remove(id) }
    feeds[name] = feed
  }

  mutating func patchCollection(_ name: String, _ patches: [TreeOperation.Patch]) throws(Refusal) {
    var feed = try feed(name) { $0.collection != nil }
    var merged: [TreeElement] = []
    for patch in patches {
      guard case .id(let id) = patch.key else { throw Refusal(code: -32602) }
      if let place = merged.firstIndex(where: { $0.id == id }) {
        merged[place] = patch.merged(into: merged[place])
      } else if let element = feed.elements[id]?.element {
        merged.append(patch.merged(into: element))
      } else {
        throw Refusal(code: -32010)
      }
    }
    for element in merged { try update(&feed, element) }
    evict(&feed)
    feeds[name] = feed
  }

  mutating func setCollection(_ name: String, _ elements: [TreeElement]) throws(Refusal) {
    var feed = try feed(name) { $0.collection != nil }
    if elements.contains(where: { $0.id == nil }) { throw Refusal(code: -32003) }
    for id in feed.elements.keys where !elements.contains(where: { $0.id == id }) { feed.remove(id) }
    feeds[name] = feed
    try update(name, elements)
  }

  private mutating func update(_ feed: inout TreeFeed, _ element: TreeElement) throws(Refusal) {
    guard let id = element.id else { throw Refusal(code: -32003) }
    guard let collection = feed.collection, feed.elements[id]?.element != element else { return }
    let verdicts = collection.verdicts(element)
    guard verdicts.contains(true) else { return feed.remove(id) }
    let old = feed.elements[id]
    let now = tick()
    feed.elements[id] = .init(element: element, arrival: old?.arrival ?? now, changed: now, at: moment)
    if let section = collection.section { return feed.place(id, in: section, of: old, token()) }
    var left: [UInt64] = []
    var arrived: [Int] = []
    for (place, accepted) in verdicts.enumerated() {
      let row = feed.bins[place].rows.firstIndex { $0.id == id }
      switch (row, accepted) {
      case (let row?, false): left.append(feed.bins[place].rows.remove(at: row).token)
      case (nil, true):
        arrived.append(place)
        feed.insert(id, token(), into: place)
      case (let row?, true):
        guard let sort = collection.bins[place].sort, let before = old?.element,
          sort.isBefore(before, element) || sort.isBefore(element, before)
        else { continue }
        feed.insert(id, feed.bins[place].rows.remove(at: row).token, into: place)
      case (nil, false): break
      }
    }
    if left.count == 1 && arrived.count == 1, let row = feed.bins[arrived[0]].rows.firstIndex(where: { $0.id == id }) {
      // It left one bin for one other: the same row.
      feed.bins[arrived[0]].rows[row].token = left[0]
    }
  }

  private func evict(_ feed: inout TreeFeed) {
    guard let most = feed.collection?.retain?.count else { return }
    for entry in feed.elements.sorted(by: { $0.value.changed < $1.value.changed }).prefix(
      max(0, feed.elements.count - most))
    {
      feed.remove(entry.key)
    }
  }

  /// The first feed in the order of names that has elements whose time is over; nil if there is none.
  var due: String? {
    feeds.filter { $0.value.hasDueElements(at: moment) }.keys.min()
  }

  /// Evicts the elements of a feed whose time is over.
  mutating func evictDue(_ name: String) {
    guard var feed = feeds[name], let retain = feed.retain else { return }
    feed.items.removeAll { retain.isOver($0.element, changed: $0.at, at: moment) }
    for (id, entry) in feed.elements where retain.isOver(entry.element, changed: entry.at, at: moment) {
      feed.remove(id)
    }
    feeds[name] = feed
  }

  /// Bins of the same name keep their rows' identity; elements come in the order of their arrival.
  mutating func rebin(_ feed: inout TreeFeed, _ collection: TreeCollection) {
    let old = feed.bins
    let elements = feed.elements
    feed.definition.content = .collection(collection)
    feed.elements = [:]
    feed.bins = []
    if collection.section == nil {
      feed.bins = collection.bins.map { bin in
        let known = old.first { $0.name == bin.name }
        return .init(instance: known?.instance ?? token(), name: bin.name)
      }
    }
    for (id, entry) in elements.sorted(by: { $0.value.arrival < $1.value.arrival }) {
      let verdicts = collection.verdicts(entry.element)
      guard verdicts.contains(true) else { continue }
      feed.elements[id] = entry
      if let section = collection.section {
        let name = section.name(entry.element)
        let known = old.first { $0.name == name }?.rows.first { $0.id == id }
        feed.place(id, in: section, of: nil, known?.token ?? token())
        continue
      }
      for (place, accepted) in verdicts.enumerated() where accepted {
        let known = old.first { $0.name == feed.bins[place].name }?.rows.first { $0.id == id }
        feed.insert(id, known?.token ?? token(), into: place)
      }
    }
    evict(&feed)
  }

  /// An element that left a bin and came back to it since `before` is the same row, rather than one of the same element that
  /// left another bin.
  mutating func reunite(_ name: String, since before: TreeFeed) {
    guard var feed = feeds[name], feed.instance == before.instance else { return }
    if feed.collection?.section != nil { return reuniteSections(name, since: before) }
    if let list = feed.list {
      guard list.hasID, before.hasIdentity else { return }
      for row in feed.items.indices {
        let old = before.items.first { $0.element.id == feed.items[row].element.id }
        if let old { feed.items[row].token = old.token }
      }
      feeds[name] = feed
      return
    }
    var places: [UInt64: Int] = [:]
    for place in feed.bins.indices where place < before.bins.count {
      for row in feed.bins[place].rows.indices {
        guard let old = before.bins[place].rows.first(where: { $0.id == feed.bins[place].rows[row].id }) else {
          continue
        }
        feed.bins[place].rows[row].token = old.token
        places[old.token] = place
      }
    }
    for place in feed.bins.indices {
      for (row, entry) in feed.bins[place].rows.enumerated() where places[entry.token].map({ $0 != place }) ?? false {
        feed.bins[place].rows[row].token = token()
      }
    }
    pairRows(of: &feed, since: before)
    feeds[name] = feed
  }

  /// An element that was there before is the same row, whatever section it is in.
  private mutating func reuniteSections(_ name: String, since before: TreeFeed) {
    guard var feed = feeds[name] else { return }
    var former: [Int: UInt64] = [:]
    for row in before.bins.flatMap(\.rows) { former[row.id] = row.token }
    for place in feed.bins.indices {
      for row in feed.bins[place].rows.indices {
        if let token = former[feed.bins[place].rows[row].id] { feed.bins[place].rows[row].token = token }
      }
    }
    feeds[name] = feed
  }
}

extension TreeCollection {
  fileprivate func verdicts(_ element: TreeElement) -> [Bool] {
    var isTaken = false
    return bins.map { bin in
      let accepted = !(isTaken && isExclusive) && bin.filter.accepts(element)
      isTaken = isTaken || accepted
      return accepted
    }
  }
}

extension TreeFeed {
  fileprivate func hasDueElements(at moment: Int) -> Bool {
    guard let retain, retain.isTimed else { return false }
    return items.contains { retain.isOver($0.element, changed: $0.at, at: moment) }
      || elements.values.contains { retain.isOver($0.element, changed: $0.at, at: moment) }
  }

  /// Before the first row that sorts after it, or at the end.
  fileprivate mutating func insert(_ id: Int, _ token: UInt64, into place: Int) {
    var row = bins[place].rows.count
    if let sort = collection?.bins[collection?.section == nil ? place : 0].sort, let element = elements[id]?.element {
      row =
        bins[place].rows.firstIndex { other in
          elements[other.id].map { sort.isBefore(element, $0.element) } ?? false
        } ?? row
    }
    bins[place].rows.insert((id, token), at: row)
  }

  fileprivate mutating func remove(_ id: Int) {
    elements[id] = nil
    items.removeAll { $0.element.id == id }
    for place in bins.indices { bins[place].rows.removeAll { $0.id == id } }
    if collection?.section != nil { bins.removeAll { $0.rows.isEmpty } }
  }

  /// Puts the row of an element into the section of its value.
  ///
  /// - Parameters:
  ///   - old: the element before; nil for one that was not there.
  ///   - token: the token of a row that was not there.
  fileprivate mutating func place(_ id: Int, in section: TreeCollection.Section, of old: Element?, _ token: UInt64) {
    guard let element = elements[id]?.element else { return }
    let name = section.name(element)
    var token = token
    if let place = bins.firstIndex(where: { $0.rows.contains { $0.id == id } }),
      let row = bins[place].rows.firstIndex(where: { $0.id == id })
    {
      let sort = collection?.bins[0].sort
      let isSorted = old.map { old in
        sort.map { !$0.isBefore(old.element, element) && !$0.isBefore(element, old.element) } ?? true
      }
      if bins[place].name == name && isSorted ?? false { return }
      token = bins[place].rows.remove(at: row).token
      if bins[place].rows.isEmpty { bins.remove(at: place) }
    }
    var place = bins.firstIndex { $0.name == name }
    if place == nil {
      let next = bins.firstIndex { section.isBefore(name, $0.name) } ?? bins.count
      bins.insert(Bin(instance: mix(instance, name.token), name: name), at: next)
      place = next
    }
    if let place { insert(id, token, into: place) }
  }
}
