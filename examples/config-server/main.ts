import { followGenerations, RemoteSource } from '@kit/config-server/client';

const section = { url: 'http://127.0.0.1:8888', application: 'billing', profile: 'development', token: process.env['BILLING_TOKEN'] ?? '' };
const config = new RemoteSource({ ...section, cacheFile: 'billing.cache' });

await config.refresh(); // from the server, or from billing.cache while it is down
console.log(`pool size ${String(config.get('pool.size'))}, from the ${config.origin}`);
for await (const { generation } of followGenerations(section)) {
  if ((await config.refresh()).changed) console.log(`generation ${generation}: pool size ${String(config.get('pool.size'))}`);
}
