import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AdminSession } from '../../kit/src/admin/wire/wire.ts';
import { wordsFor } from '../src/values/format.ts';
import { AdminBrowser, go, settled } from './admin-browser.ts';
import { fill, OPENED, receivers } from './shop/fill.ts';
import { Shop } from './shop/shop.ts';
import { groups } from '../../kit/src/contrib/accounts/models.ts';
import { sealEntries } from '../../kit/src/contrib/audit/chain/seal.ts';
import { insertMany } from '../../kit/src/db/index.ts';

/** Would run as script in every way that text becomes markup, and leaves a mark that is looked for. */
const MARKUP = `"'><img src=x data-planted onerror=window.hacked=1>`;
/** For columns that hold forty characters. */
const SHORT = '<i data-planted onload=hacked=1>';
const ADDRESS = 'javascript:window.hacked=1//';

let shop: Shop;
let admin: AdminBrowser;
let page: Page;

beforeAll(async () => {
  shop = await Shop.open({ now: OPENED, transport: receivers(() => shop) });
  await fill(shop);
  admin = await AdminBrowser.open(shop);
  page = await admin.at('#/');
  await plant(shop);
});
afterAll(async () => {
  await admin.close();
  await shop[Symbol.asyncDispose]();
});

/** Straight into the tables: whatever the checks on the way in refuse today, the site must draw tomorrow. */
async function plant({ db }: Shop): Promise<void> {
  const json = JSON.stringify({ [MARKUP]: [MARKUP, { address: ADDRESS }] });
  const list = JSON.stringify([MARKUP, ADDRESS]);
  const set = (table: string, values: Record<string, string>) => {
    const columns = Object.keys(values).map((column, index) => `${column} = $${index + 1}`);
    return db.query(`update ${table} set ${columns.join(', ')}`, Object.values(values));
  };
  await db.query("update users set username = username || $1, email = email || $1 where username <> 'olivia'", [MARKUP]);
  await db.query('update api_keys set name = name || $1, scopes = $2, rate_limit = $3, revoked_reason = $1', [MARKUP, list, SHORT]);
  await set('webhook_endpoints', { events: list, description: MARKUP, tenant_key: MARKUP });
  await db.query(
    'update webhook_endpoints set url = $1 where description is not null and id in (select id from webhook_endpoints order by id limit 2)',
    [ADDRESS + MARKUP],
  );
  await db.query("update webhook_endpoints set url = url || $1 where url like 'https:%'", [MARKUP]);
  await set('webhook_events', { type: MARKUP, data: json, tenant_key: MARKUP, ordering_key: MARKUP });
  await db.query('update webhook_events set idempotency_key = id || $1', [MARKUP]);
  await set('webhook_deliveries', { event_type: MARKUP, last_error: MARKUP, ordering_key: MARKUP });
  await set('webhook_attempts', { error: MARKUP, response_excerpt: MARKUP, worker: MARKUP });
  await insertMany(db, groups, [{ name: `Support ${MARKUP}` }, { name: `Sales ${MARKUP}`, tenant_key: MARKUP }]);
  await sealEntries(db, { wait: true });
  await set('audit_entries', {
    actor_name: MARKUP,
    action: MARKUP,
    target_type: MARKUP,
    target_id: MARKUP,
    request_id: MARKUP,
    credential_id: MARKUP,
    actor_scheme: MARKUP,
  });
  await set('audit_entries', {
    before: json,
    after: JSON.stringify({ [MARKUP]: 'other' }),
    metadata: JSON.stringify({ client: MARKUP, user_agent: MARKUP }),
  });
  await db.query('update products set name = name || $1, notes = $1', [MARKUP]);
}

/** Nothing that was planted became an element, a script or an address. */
async function expectHarmless(where: string): Promise<void> {
  const found = {
    hacked: await page.evaluate('window.hacked'),
    elements: await page.locator('[data-planted], img[src="x"]').count(),
    addresses: await page.locator('a[href^="javascript:" i], [onerror], [onload]').count(),
  };
  expect({ where, ...found }).toEqual({ where, hacked: undefined, elements: 0, addresses: 0 });
  admin.expectQuiet();
}

async function settle(): Promise<void> {
  await settled(page);
  // Not by a script that asks again and again: the page's own policy forbids to evaluate one.
  await page.locator('main h1').first().waitFor({ state: 'attached' });
}

test('text from outside stays text on every screen, in every dialog and in every form', async () => {
  const session = (await page.evaluate("fetch('api/session').then((answer) => answer.json())")) as AdminSession;
  expect(session.site.resources.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['users', 'groups', 'api-keys', 'endpoints', 'deliveries', 'events', 'audit-log', 'products']),
  );
  await page.reload();
  await settle();
  await expectHarmless('overview');

  for (const resource of session.site.resources) {
    await go(page, shop, `#/${resource.name}`);
    await page.locator('tbody').getByRole('link').first().waitFor();
    // It is there to be seen: a test of nothing would pass as well.
    await expect.poll(() => page.locator('tbody').innerText()).toContain('data-planted');
    await expectHarmless(resource.name);

    // Selection and its dialogs name the records.
    const bulk = resource.actions.find((action) => action.on === 'selection');
    if (bulk !== undefined) {
      await page.getByRole('checkbox', { name: 'Select all on this page' }).check();
      await page.getByRole('button', { name: wordsFor(bulk.label, 2), exact: true }).click();
      await page.getByRole('dialog').getByText('data-planted').first().waitFor();
      await expectHarmless(`${resource.name}: ${bulk.name}`);
      await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    }

    await page
      .locator('tbody')
      .getByRole('link', { name: /data-planted/ })
      .first()
      .click();
    await page.getByRole('navigation', { name: 'Where you are' }).waitFor();
    await settle();
    for (const details of await page.getByRole('button', { name: /^Details of/ }).all()) await details.click();
    await expect.poll(() => page.getByRole('main').innerText()).toContain('data-planted');
    await expectHarmless(`${resource.name} record`);

    if ((await page.getByRole('link', { name: 'Edit', exact: true }).count()) > 0) {
      await page.getByRole('link', { name: 'Edit', exact: true }).click();
      await page.getByRole('button', { name: 'Save' }).waitFor();
      await expectHarmless(`${resource.name} form`);
    }
  }
}, 900_000);

test('an error that quotes what was sent stays text', async () => {
  await go(page, shop, `#/users?search=${encodeURIComponent(MARKUP)}`);
  await page.locator('tbody').getByRole('link').first().waitFor();
  await page.route('**/api/resources/users?**', (route) =>
    route.fulfill({ status: 409, contentType: 'application/problem+json', body: JSON.stringify({ code: 'conflict', detail: MARKUP }) }),
  );
  await page.getByRole('button', { name: 'Load the list again' }).click();
  await page.getByRole('alert').filter({ hasText: 'data-planted' }).waitFor();
  await expectHarmless('an error');
  await page.unroute('**/api/resources/users?**');
});

test('the page forbids scripts and styles that are not its own, and other sites', async () => {
  const answer = await page.request.get(shop.address);
  const policy = answer.headers()['content-security-policy'] ?? '';
  expect(policy).toContain("default-src 'none'");
  expect(policy).not.toMatch(/unsafe-inline|unsafe-eval|unsafe-hashes|\*/);
  expect(
    await page.evaluate(`new Promise((done) => {
    document.addEventListener('securitypolicyviolation', (event) => done(event.effectiveDirective), { once: true });
    document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.hacked = 1' }));
  })`),
  ).toMatch(/^script-src/);
  expect(await page.evaluate('window.hacked')).toBeUndefined();
  admin.complaints.length = 0;
});
