import { dirname, relative } from 'node:path';
import type { DemoApi } from './start-api.ts';
import type { DemoConfigServer } from './start-config-server.ts';

export interface PanelFacts {
  readonly api: DemoApi;
  readonly configuration: DemoConfigServer;
  readonly seconds: number;
  readonly colour: boolean;
}

/** Where `npm start` was called; npm itself runs the script in the example's folder. */
function startedIn(): string {
  return process.env['INIT_CWD'] ?? process.cwd();
}

/** Five commands, each copy-paste ready in the folder npm start was called in. */
export function commands({
  api,
  configuration,
}: Pick<PanelFacts, 'api' | 'configuration'>): { readonly title: string; readonly command: string }[] {
  const key = `-H 'X-API-Key: ${api.key}'`;
  const file = relative(startedIn(), configuration.file);
  return [
    {
      title: 'place an order',
      command: `curl -s ${api.url}/v1/orders ${key} -H 'content-type: application/json' -d '{"item":"Filter paper","quantity":3}'`,
    },
    { title: 'list your orders', command: `curl -s ${api.url}/v1/orders ${key}` },
    {
      title: 'read the settings the API runs on',
      command: `curl -s ${configuration.url}/orders/development -H 'authorization: Bearer ${configuration.token}'`,
    },
    { title: 'change a setting; the next order follows it', command: `sed -i.bak 's/^quantity_max = .*/quantity_max = 2/' ${file}` },
    {
      title: 'revoke the key; the next request is refused',
      command: `npx kit --config examples/orders/kit.config.ts apikey revoke --prefix ${api.key.split('_')[1]}`,
    },
  ];
}

export function panel(facts: PanelFacts): string {
  const { api, configuration, seconds, colour } = facts;
  const paint = (code: number, text: string): string => (colour ? `\x1b[${code}m${text}\x1b[0m` : text);
  const row = (label: string, value: string, note = ''): string =>
    `  ${label.padEnd(22)}${paint(36, value)}${note === '' ? '' : `  ${paint(2, note)}`}`;
  return [
    '',
    `  ${paint(1, 'Orders')}, ready in ${seconds.toFixed(1)} s. ${paint(2, 'Everything listens on loopback; Ctrl-C stops it.')}`,
    '',
    row('API reference', `${api.url}/docs`),
    row('API', `${api.url}/v1/orders`),
    row('configuration server', configuration.url, 'serves /orders/development'),
    row('log in as', `${api.username} / ${api.password}`, 'POST /v1/account/login; new at every start'),
    row('API key', api.key, 'new at every start'),
    row('logs', `${relative(startedIn(), dirname(dirname(configuration.file)))}/*.log`),
    '',
    '  Try, in another terminal:',
    ...commands(facts).flatMap(({ title, command }, index) => ['', `  ${paint(1, `${index + 1}. ${title}`)}`, `     ${command}`]),
    '',
    '',
  ].join('\n');
}
