import { spawn, spawnSync } from 'node:child_process';
import { copyFileSync, globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { launchChromium } from '../provision/chromium.ts';
import { freePort } from '../provision/free-port.ts';
import { type OrdersProcess, startOrders } from './orders-process.ts';

const root = join(import.meta.dirname, '../..');
const FIVE_MINUTES = 300_000;
const PASSWORD = 'correct horse battery staple';
const PYTHON = ['/usr/bin/python3', 'python3'].find(
  (each) => spawnSync(each, ['-c', 'import httpx, sys; assert sys.version_info >= (3, 11)']).status === 0,
);
const folder = mkdtempSync(join(tmpdir(), 'kit-example-clients-'));
let orders: OrdersProcess;
let browser: Browser;

beforeAll(async () => {
  [orders, browser] = await Promise.all([startOrders(join(folder, 'data'), await freePort(), folder), launchChromium()]);
  for (const name of globSync('*.{tsx,py}', { cwd: join(root, 'examples/orders/clients') }))
    copyFileSync(join(root, 'examples/orders/clients', name), join(folder, name));
}, FIVE_MINUTES);
afterAll(async () => {
  await browser?.close();
  await orders?.kill();
  rmSync(folder, { recursive: true, force: true });
});

const send = async (path: string, body?: object): Promise<{ readonly id: string }> => {
  const headers = { 'x-api-key': orders.key, ...(body === undefined ? {} : { 'content-type': 'application/json' }) };
  const response = await fetch(`${orders.url}/v1/orders${path}`, {
    method: 'POST',
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  expect(response.ok).toBe(true);
  return (await response.json()) as { id: string };
};

test.runIf(PYTHON !== undefined)('the Python example prints orders as they change', { timeout: FIVE_MINUTES }, async () => {
  const child = spawn(PYTHON as string, ['watch_orders.py', orders.url], { cwd: folder, env: { ...process.env, API_KEY: orders.key } });
  onTestFinished(() => void child.kill('SIGKILL'));
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => (printed += text.toString()));
  const { id } = await send('', { item: 'globe', quantity: 2 });
  await expect.poll(() => printed, { timeout: FIVE_MINUTES }).toContain('2 x globe: ');
  await send(`/${id}/cancel`);
  await expect.poll(() => printed, { timeout: FIVE_MINUTES }).toContain(`${id} is not open any more`);
});

test.each([
  ['React', 'use-orders.tsx', 'OpenOrders'],
  ['TanStack', 'order-board.tsx', 'OrderBoard'],
])('the %s example shows orders as they change', { timeout: FIVE_MINUTES }, async (_name, file, component) => {
  const input = join(folder, `main-${component}.tsx`);
  writeFileSync(
    input,
    `import { createRoot } from 'react-dom/client';
import { ${component} } from './${file}';
createRoot(document.getElementById('root')!).render(<${component} />);
`,
  );
  const bundle = await rolldown({
    input,
    logLevel: 'silent',
    resolve: { modules: [join(root, 'node_modules')] },
    transform: { define: { 'process.env.NODE_ENV': '"production"' } },
  });
  const { output } = await bundle.generate({ format: 'esm' });
  await bundle.close();

  const page = await browser.newPage();
  await page.route('**/example', (route) =>
    route.fulfill({
      contentType: 'text/html',
      body: '<!doctype html><div id="root"></div><script type="module" src="/example.js"></script>',
    }),
  );
  await page.route('**/example.js', (route) => route.fulfill({ contentType: 'text/javascript', body: output[0].code }));
  await page.goto(`${orders.url}/shop`);
  await page.getByLabel('Username or email').fill('ann');
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.locator('#username').getByText('ann').waitFor();
  await page.goto(`${orders.url}/example`);
  const list = page.getByRole('list', { name: 'Open orders' });
  // Empty, it has no size.
  await list.waitFor({ state: 'attached' });
  const { id } = await send('', { item: `clock for ${component}`, quantity: 3 });
  const entry = list.getByText(`3 × clock for ${component}`);
  await entry.waitFor();
  await send(`/${id}/cancel`);
  await entry.waitFor({ state: 'detached' });
  await page.close();
});

test('the examples are strict TypeScript', { timeout: FIVE_MINUTES }, () => {
  const compilerOptions = {
    noEmit: true,
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    allowImportingTsExtensions: true,
    skipLibCheck: true,
    jsx: 'react-jsx',
    target: 'es2023',
    module: 'esnext',
    moduleResolution: 'bundler',
    lib: ['es2023', 'dom', 'dom.iterable', 'dom.asynciterable'],
    types: [],
    paths: {
      '@tanstack/*': [join(root, 'node_modules/@tanstack/*')],
      'react/*': [join(root, 'node_modules/@types/react/*')],
      react: [join(root, 'node_modules/@types/react')],
    },
  };
  const files = ['use-orders.tsx', 'order-board.tsx'];
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }));
  const checked = spawnSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', folder], { encoding: 'utf8' });
  expect(checked.stdout).toBe('');
});
