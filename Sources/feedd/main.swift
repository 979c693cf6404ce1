import FeedServer
import FeedSystem

ProcessIdentity.exit(Daemon.main(ProcessIdentity.arguments, environment: ProcessIdentity.environment))
