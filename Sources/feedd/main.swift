import FeedServer
import FeedSystem

ProcessIdentity.exit(Daemon.main(Array(CommandLine.arguments.dropFirst()), environment: .current))
