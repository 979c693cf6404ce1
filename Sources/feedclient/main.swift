import FeedClient
import FeedSystem
import Glibc

exit(Program.run(Array(CommandLine.arguments.dropFirst()), environment: .current).rawValue)
