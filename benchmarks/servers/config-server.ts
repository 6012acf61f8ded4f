// The configuration server as the command line starts it, with its audit log on standard error.
import { ConfigServer, loadServerConfig } from '@kit/config-server';
import { serving } from '../harness/server-process.ts';

const server = await ConfigServer.start(loadServerConfig(process.argv[2] ?? ''), { log: () => undefined });
serving(server.address?.port ?? 0);
