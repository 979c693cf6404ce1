import FeedClient
import FeedJSON
import FeedSystem

extension Command {
  static let completion = Command(
    name: "completion", usage: ["bash|zsh|fish", "--sections FEED", "--ids FEED"],
    summary: "print the completions for a shell",
    examples: """
      eval "$(feedclient completion bash)"
      feedclient completion zsh > ~/.zfunc/_feedclient
      feedclient completion fish > ~/.config/fish/completions/feedclient.fish
      """,
    about: """
      Prints the script that completes commands, options, feeds, sections and identities in a shell. The options print the \
      words that the scripts offer for a feed, one a line.
      """,
    options: [
      OptionDescription("sections", help: "print the sections of FEED"),
      OptionDescription("ids", help: "print the identities of the first elements of FEED"),
    ],
    operands: 1...1, needsDaemon: false
  ) { invocation throws(Failure) in
    let (wantsSections, wantsIDs) = (invocation.options.contains("sections"), invocation.options.contains("ids"))
    if wantsSections, wantsIDs { throw invocation.usage("--sections and --ids exclude each other") }
    if wantsSections { return try invocation.printWords(invocation.sections) }
    if wantsIDs { return try invocation.printWords(invocation.identities) }
    let name = invocation.operand(0)
    guard let script = CompletionScript(rawValue: name) else {
      throw invocation.unknown("shell", name, known: CompletionScript.allCases.map(\.rawValue))
    }
    invocation.console.printRaw(script.bytes)
    return .done
  }
}

/// The completions of this program for a shell: the files of `scripts/completions`, which the build embeds.
private enum CompletionScript: String, CaseIterable {
  case bash, zsh, fish

  var bytes: [UInt8] {
    switch self {
    case .bash: PackageResources.feedclient_bash
    case .zsh: PackageResources._feedclient
    case .fish: PackageResources.feedclient_fish
    }
  }
}

extension Invocation {
  /// The maximum number of identities that are offered.
  private static let maxIdentities = 50

  /// Prints words, without those that a shell could not complete in one line.
  fileprivate func printWords(_ words: (Connection) throws(Failure) -> [String]) throws(Failure) -> ExitStatus {
    let (connection, _) = try connect(deadline: deadline())
    for word in try words(connection) where word == word.inLine { console.print(word) }
    return .done
  }

  /// The names of the sections of the feed, as commands take them.
  fileprivate func sections(_ connection: Connection) throws(Failure) -> [String] {
    try describe(operand(0), over: connection) { SectionLookup($0.member("sections")).words() }
  }

  /// The identities of the first elements of the feed, as commands take them.
  fileprivate func identities(_ connection: Connection) throws(Failure) -> [String] {
    let target = try describe(operand(0), over: connection) { PushTarget($0) }
    guard target.method == "update" else { return [] }
    var params = ParameterWriter(feed: operand(0))
    params.add("path", "$[0:\(Self.maxIdentities)]\(target.idPath.dropFirst())")
    return try call(connection, "query", params.finish(), deadline: deadline()) { result in
      result.member("nodes")?.elements.map(Operands.word(ofID:)) ?? []
    }
  }
}
