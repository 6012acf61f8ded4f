// Serves requests with the request log on and prints how many there were after each time that the log was written: node log-until-killed.ts <database URL>
import { migrateApp } from '../src/app/data/migration-modules.ts';
import { createApp } from '../src/app/index.ts';
import { requests } from '../src/contrib/requests/index.ts';
import { requestLogs } from '../src/contrib/requests/log/log.ts';
import { Controller, jsonSchema, route } from '../src/http/index.ts';
import { allowAny } from '../src/permissions/index.ts';

class Open extends Controller {
  get = route.get('/', { permission: allowAny, response: jsonSchema<object>({}) }, () => ({}));
}

const [database = ''] = process.argv.slice(2);
const app = createApp({ database, modules: [requests()], mount: { '/v1': { '/open': Open } }, log: { level: 'silent' } });
await migrateApp(app);
await app.ready();
const log = requestLogs.of(app.db);
let served = 0;
for (;;) {
  await Promise.all(Array.from({ length: 7 }, () => app.inject('/v1/open')));
  served += 7;
  // Half of the time the process is killed while it writes.
  await log.flush();
  process.stdout.write(`${served}\n`);
}
