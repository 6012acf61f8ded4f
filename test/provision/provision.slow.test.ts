import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { launchChromium } from './chromium.ts';
import { createPostgresDatabase, ensurePostgresTemplate } from '../../packages/kit/src/testing/test-database.ts';

async function rows(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}

test('a template is filled once and every clone of it is a database of its own', async () => {
  const server = inject('postgresUrl');
  let filled = 0;
  const fill = async (url: string): Promise<void> => {
    filled++;
    await rows(url, `create table notes (body text); insert into notes values ('from the template')`);
  };
  const template = `provision_${process.pid}`;
  await Promise.all([ensurePostgresTemplate(server, template, fill), ensurePostgresTemplate(server, template, fill)]);
  expect(filled).toBe(1);

  const [a, b] = await Promise.all([createPostgresDatabase(server, template), createPostgresDatabase(server, template)]);
  await rows(a.url, `insert into notes values ('only in a')`);
  expect(await rows(a.url, 'select body from notes')).toHaveLength(2);
  expect(await rows(b.url, 'select body from notes')).toEqual([{ body: 'from the template' }]);

  await Promise.all([a.remove(), b.remove()]);
  expect(await rows(server, `select 1 from pg_database where datname = '${new URL(a.url).pathname.slice(1)}'`)).toEqual([]);
});

test('a real browser loads a page from loopback and runs its script', async () => {
  const site = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html');
    response.end(
      '<!doctype html><title>kit</title><p id="x"></p><script>document.getElementById("x").textContent = String(6 * 7)</script>',
    );
  });
  await new Promise<void>((done) => site.listen(0, '127.0.0.1', done));
  const browser = await launchChromium();
  try {
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${(site.address() as AddressInfo).port}/`);
    expect(await page.textContent('#x')).toBe('42');
  } finally {
    await browser.close();
    site.close();
  }
}, 300_000);
