import { dirname, relative, resolve } from 'node:path';
import type { DemoApi } from './start-api.ts';
import type { DemoConfigServer } from './start-config-server.ts';
import type { DemoReceiver } from './start-receiver.ts';

export interface PanelFacts {
  readonly api: DemoApi;
  readonly configuration: DemoConfigServer;
  readonly receiver: DemoReceiver;
  readonly seconds: number;
  readonly colour: boolean;
}

/** Where `npm start` was called; npm itself runs the script in the example's folder. */
function startedIn(): string {
  return process.env['INIT_CWD'] ?? process.cwd();
}

/** What a command of `kit` needs to find the data of this demo: the paths of two folders are relative to different ones. */
function dataSetting(): string {
  const folder = process.env['DATA_FOLDER'];
  return folder === undefined ? '' : `DATA_FOLDER=${relative(startedIn(), resolve(folder))} `;
}

/** An authenticator app without a phone. npm runs it in the folder of the example. */
function codeCommand(): string {
  const folder = process.env['DATA_FOLDER'];
  return `${folder === undefined ? '' : `DATA_FOLDER=${folder} `}npm run --silent code --workspace examples/orders`;
}

/** Ten commands, each copy-paste ready in the folder npm start was called in. */
export function commands({ api, configuration, receiver }: PanelFacts): { readonly title: string; readonly command: string }[] {
  const key = `-H 'X-API-Key: ${api.key}'`;
  const json = `-H 'content-type: application/json'`;
  const file = relative(startedIn(), configuration.file);
  const bearer = `-H "Authorization: Bearer $(cat ${relative(startedIn(), configuration.tokenFile)})"`;
  const prefix = api.key.split('_')[1];
  const newest = `$(curl -s '${api.url}/v1/orders?limit=1&fields=id' ${key} | sed 's/.*"id":"\\([^"]*\\)".*/\\1/')`;
  const shares = `{"items":[{"subject":"user:${api.colleagueId}","set":"viewer"},{"subject":"group:${api.groupId}","set":"editor"}]}`;
  return [
    { title: 'place an order', command: `curl -s ${api.url}/v1/orders ${key} ${json} -d '{"item":"Filter paper","quantity":3}'` },
    {
      title: 'find open orders by filter, with their invoices, some fields only',
      command: `curl -s '${api.url}/v1/orders?status=open&total__gte=10&expand=invoice&fields=item,total,version,invoice' ${key}`,
    },
    {
      title: 'change the newest order; run it again, and the stale ETag is rejected',
      command: `curl -s -X PATCH ${api.url}/v1/orders/${newest} ${key} ${json} -H 'If-Match: "1"' -d '{"quantity":2}'`,
    },
    {
      title: 'share it: a colleague may look, a group may change it',
      command: `curl -s -X PUT ${api.url}/v1/orders/${newest}/grants ${key} ${json} -d '${shares}'`,
    },
    { title: 'see its webhook at the receiver, signature verified', command: `curl -s ${receiver.url}` },
    { title: 'see its delivery at the sender', command: `curl -s ${api.url}/v1/webhooks/${api.endpointId}/deliveries ${key}` },
    {
      title: 'make a CSV of all orders by a job, and follow its progress',
      command: `curl -sN ${key} ${api.url}$(curl -s -X POST ${key} ${api.url}/v1/orders/export | sed 's/.*"url":"\\([^"]*\\)".*/\\1/')/events`,
    },
    { title: 'change a setting; the next order (1.) is rejected', command: `sed -i.bak 's/^quantity_max = .*/quantity_max = 2/' ${file}` },
    {
      title: 'ask which file and line the setting comes from; the value is not shown',
      command: `curl -s ${configuration.url}/orders/development/explain/quantity_max ${bearer}`,
    },
    {
      title: 'revoke the key; the next request is rejected',
      command: `${dataSetting()}npx kit --config examples/orders/kit.config.ts apikey revoke --prefix ${prefix}`,
    },
  ];
}

export function panel(facts: PanelFacts): string {
  const { api, configuration, receiver, seconds, colour } = facts;
  const paint = (code: number, text: string): string => (colour ? `\x1b[${code}m${text}\x1b[0m` : text);
  const row = (label: string, value: string, note = ''): string =>
    `  ${label.padEnd(22)}${paint(36, value)}${note === '' ? '' : `  ${paint(2, note)}`}`;
  return [
    '',
    `  ${paint(1, 'Orders')}, ready in ${seconds.toFixed(1)} s. ${paint(2, 'Everything listens on loopback; Ctrl-C stops it.')}`,
    '',
    row('admin site', `${api.url}/admin/`, `log in as ${api.username} / ${api.password}`),
    row('one-time code', codeCommand(), 'asked for after the password; prints the code of these 30 seconds'),
    row('mails', `${api.url}/admin/#/mails`, 'after an invitation, or "Forgot your password?"; stored in a folder'),
    row(
      'page for customers',
      `${api.url}/shop`,
      `log in as ${api.customer.username} / ${api.customer.password}; uses the generated client`,
    ),
    row("developers' portal", `${api.url}/portal/`, 'for customers: keys, endpoints, requests, usage; log in as on the page for customers'),
    row('API reference', `${api.url}/docs`),
    row('API', `${api.url}/v1/orders`, api.portReason),
    row('configuration server', configuration.url, 'serves /orders/development; carrier_key is encrypted in its file'),
    row('webhook receiver', receiver.url, 'verifies what arrives and shows it'),
    row('tools for AI agents', `claude mcp add --transport http orders ${api.url}/mcp --header 'Authorization: Bearer ${api.key}'`),
    row('metrics', api.metricsUrl, 'for Prometheus'),
    row('API key', api.key, 'new at every start'),
    row('logs', `${relative(startedIn(), dirname(dirname(configuration.file)))}/*.log`),
    '',
    '  Try, in another terminal:',
    ...commands(facts).flatMap(({ title, command }, index) => ['', `  ${paint(1, `${index + 1}. ${title}`)}`, `     ${command}`]),
    '',
    '',
  ].join('\n');
}
