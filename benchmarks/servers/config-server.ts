// The configuration server as the command line starts it, with its audit log on standard error. Given a second argument, it notes there
// the instant of every install, so that a subscriber can tell how long the news took.
import { appendFileSync } from 'node:fs';
import { ConfigServer, loadServerConfig } from '@kit/config-server';
import { serving } from '../harness/server-process.ts';

const [serverToml = '', stamps] = process.argv.slice(2);
const server = await ConfigServer.start(loadServerConfig(serverToml), {
  log: (line) => {
    if (stamps !== undefined && line.includes('is at generation'))
      appendFileSync(stamps, `${performance.timeOrigin + performance.now()}\n`);
  },
});
serving(server.address?.port ?? 0);
