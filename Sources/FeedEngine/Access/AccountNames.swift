/// How the names of users and groups become numbers; the engine itself asks the system nothing.
public struct AccountNames {
  /// The number of a user; nil when there is no such user.
  public let user: (String) -> UInt32?
  /// The number of a group and the users that are in it besides those whose first group it is.
  public let group: (String) -> (gid: UInt32, members: [UInt32])?

  public init(
    user: @escaping (String) -> UInt32?, group: @escaping (String) -> (gid: UInt32, members: [UInt32])?
  ) {
    self.user = user
    self.group = group
  }
}
