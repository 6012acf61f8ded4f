import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { addGroupMember, createGroup } from '../../kit/src/contrib/accounts/index.ts';
import { deliverDue, publish } from '../../kit/src/contrib/webhooks/index.ts';
import { AdminBrowser, go, pick, row, settled } from './admin-browser.ts';
import { fill, OPENED, receivers } from './shop/fill.ts';
import { Shop, STAFF } from './shop/shop.ts';
import { sealEntries } from '../../kit/src/contrib/audit/chain/seal.ts';

let shop: Shop;
let admin: AdminBrowser;
// One page for all: going to another place is what people do, and a fresh load of everything is not.
let page: Page;

beforeAll(async () => {
  shop = await Shop.open({ now: OPENED, transport: receivers(() => shop) });
  await fill(shop);
  admin = await AdminBrowser.open(shop);
  page = await admin.at('#/');
});
afterAll(async () => {
  await admin.close();
  await shop[Symbol.asyncDispose]();
});
afterEach(() => admin.expectQuiet());

const at = (hash: string): Promise<void> => go(page, shop, hash);
const dialog = () => page.getByRole('dialog');
const said = (text: string | RegExp) => page.getByRole('alert').filter({ hasText: text }).first().waitFor();
const heading = (name: string | RegExp) => page.getByRole('heading', { name, level: 1, exact: true }).waitFor();
const one = async <T>(sql: string, values: unknown[] = []): Promise<T | undefined> => (await shop.db.query<T & object>(sql, values))[0];

test('on a low screen the navigation scrolls to its last entry', async () => {
  await at('#/');
  await page.setViewportSize({ width: 1280, height: 300 });
  try {
    const last = page.getByRole('navigation', { name: 'Screens' }).getByRole('link').last();
    await last.click();
    await expect.poll(() => last.getAttribute('aria-current')).toBe('page');
  } finally {
    await page.setViewportSize({ width: 1280, height: 900 });
  }
});

describe('overview', () => {
  test('shows events, deliveries, success rate, latency and failing endpoints for the chosen range', async () => {
    await at('#/');
    for (const title of ['Webhooks', 'API keys']) await page.getByRole('main').getByRole('heading', { name: title, level: 2 }).waitFor();
    for (const tile of ['Events', 'Deliveries', 'Success rate', 'Oldest waiting', 'Failing endpoints', 'Active keys'])
      await page.getByRole('main').getByText(tile, { exact: true }).first().waitFor();
    const events = page.getByRole('main').getByText('Events', { exact: true }).first().locator('..');
    const day = await events.innerText();
    await page.getByText('7 days', { exact: true }).click();
    await expect.poll(() => events.innerText()).not.toBe(day);
    expect(new URL(page.url()).hash).toBe('#/?range=7d');
    await page.goBack();
    await expect.poll(() => events.innerText()).toBe(day);
  });

  test('a chart is read by keyboard, and its numbers are there as a table', async () => {
    await at('#/');
    const chart = page.getByRole('slider').first();
    await chart.focus();
    const last = await chart.getAttribute('aria-valuetext');
    await page.keyboard.press('ArrowLeft');
    await expect.poll(() => chart.getAttribute('aria-valuetext')).not.toBe(last);
    await page.keyboard.press('Home');
    await expect.poll(() => chart.getAttribute('aria-valuenow')).toBe('0');
    // The browser of these tests asks for reduced motion: nothing in a chart moves, whatever its own styles say.
    const motion = await page.evaluate(`(() => {
      const plot = document.querySelector('[role=slider]');
      const durations = [plot, ...plot.querySelectorAll('svg, svg *')].map((part) => {
        part.style.transition = 'all 3s';
        const { transitionDuration } = getComputedStyle(part);
        part.style.transition = '';
        return transitionDuration;
      });
      return { parts: durations.length > 5, durations: [...new Set(durations)] };
    })()`);
    expect(motion).toEqual({ parts: true, durations: ['0s'] });
    await page.getByRole('button', { name: 'Show as a table' }).first().click();
    expect(
      await page
        .getByRole('region', { name: /as a table/ })
        .getByRole('row')
        .count(),
    ).toBeGreaterThan(10);
  });

  test('what fails comes first, an empty chart takes no room, and the page says how fresh it is', async () => {
    await at('#/');
    await page.getByText(/^Updated .* · every 30 s · times in UTC$/).waitFor();
    const part = page.getByRole('region', { name: 'Webhooks' });
    const top = async (locator: ReturnType<Page['locator']>) => (await locator.boundingBox())?.y ?? Number.NaN;
    const urgent = part.getByRole('heading', { name: 'Endpoints that fail or are disabled', exact: true });
    expect(await top(urgent)).toBeLessThan(await top(part.getByRole('figure').first()));
    const tones = await part
      .locator('[class*="tile"][data-tone]')
      .evaluateAll((tiles) => tiles.map((tile) => tile.getAttribute('data-tone')));
    const worst = tones.filter((tone) => tone === 'bad');
    expect(worst.length).toBeGreaterThan(0);
    expect(tones.slice(0, worst.length)).toEqual(worst);
    await page.route('**/api/overview?range=1h', async (route) => {
      const answer = await (await route.fetch()).json();
      for (const { charts } of answer.parts) for (const chart of charts) for (const series of chart.series) series.values.fill(null);
      await route.fulfill({ json: answer });
    });
    await page.getByText('1 hour', { exact: true }).click();
    await part.getByText(/^No data in this range: .*Latency of attempts/).waitFor();
    await expect.poll(() => part.getByRole('figure').count()).toBe(0);
    await page.unroute('**/api/overview?range=1h');
  });

  test('a tile leads to the list behind its number', async () => {
    await at('#/');
    await page
      .getByRole('link', { name: /Failing endpoints/ })
      .first()
      .click();
    await heading('Endpoints');
    expect(new URL(page.url()).hash).toContain('filter.');
    await expect.poll(() => page.getByRole('row').count()).toBe(2);
  });
});

describe('API keys', () => {
  test('are found by name, prefix and owner, and by state; the address is the list', async () => {
    await at('#/api-keys');
    const key = await one<{ prefix: string }>("select prefix from api_keys where name = 'Nightly export'");
    for (const search of ['nightly', key?.prefix ?? '']) {
      await page.getByRole('searchbox', { name: 'Search' }).fill(search);
      await expect.poll(() => page.locator('tbody').getByRole('row').count()).toBe(1);
      await expect.poll(() => row(page, 'Nightly export').isVisible()).toBe(true);
    }
    await page.getByRole('searchbox', { name: 'Search' }).fill('margaret');
    await expect.poll(() => page.locator('tbody').getByRole('row').count()).toBe(3);
    await page.getByLabel('State').selectOption('expired');
    await expect.poll(() => page.locator('tbody').getByRole('row').count()).toBe(1);
    expect(new URL(page.url()).hash).toBe('#/api-keys?search=margaret&filter.state=expired');
    await page.reload();
    await row(page, 'Trial').waitFor();
    await page.getByRole('button', { name: 'Clear', exact: true }).click();
    await expect.poll(() => page.locator('tbody').getByRole('row').count()).toBe(12);
    await page.getByRole('searchbox', { name: 'Search' }).fill('nothing like this');
    await page.getByText('No API keys match. Change the search or clear the filters.').waitFor();
  });

  test('are sorted by a column, and the way back undoes it', async () => {
    await at('#/api-keys');
    const first = () => page.locator('tbody').getByRole('link').first().innerText();
    const usual = await first();
    await page.locator('thead').getByText('Name', { exact: true }).click();
    await expect.poll(first).toBe('CRM sync');
    await page.goBack();
    await expect.poll(first).toBe(usual);
    await page.locator('thead').getByText('Prefix', { exact: true }).click();
    await expect.poll(() => page.evaluate('location.hash')).toBe('#/api-keys?sort=prefix');
    const note = (heading: string) => page.locator('thead').getByText(heading, { exact: true }).getAttribute('title');
    expect(await note('Name')).toBe('Has no index: of more than 50,000 records, the newest 50,000 are sorted.');
    expect(await note('State')).toBe('Cannot be sorted: it is computed from other columns.');
  });

  test('cannot be created here, and the page says why', async () => {
    await at('#/api-keys');
    await expect.poll(() => page.getByRole('link', { name: /^New/ }).count()).toBe(0);
    await page.getByRole('note').filter({ hasText: 'A key is shown once' }).waitFor();
    await at('#/api-keys/-/new');
    await page.getByRole('note').filter({ hasText: 'A key is shown once' }).waitFor();
    await expect.poll(() => page.getByRole('textbox').count()).toBe(0);
  });

  test('are edited: name, scopes, rate limit and expiry; a fault stands at its field', async () => {
    await at('#/api-keys?search=Loyalty+app+(new)');
    await page.getByRole('link', { name: 'Loyalty app (new)' }).click();
    await page.getByRole('link', { name: 'Edit' }).click();
    await heading('Edit Loyalty app (new)');
    await page.getByRole('textbox', { name: 'Rate limit' }).fill('many');
    await page.getByRole('button', { name: 'Save' }).click();
    const limit = page.getByRole('textbox', { name: 'Rate limit' });
    await expect.poll(() => limit.getAttribute('aria-invalid')).toBe('true');
    await expect.poll(() => page.evaluate('document.activeElement?.getAttribute("name")')).toBe('rate_limit');
    await limit.fill('30/min');
    await page.getByRole('textbox', { name: 'Name' }).fill('Loyalty app v2');
    await page.locator('#field-scopes').fill('orders:read');
    await page.keyboard.press('Enter');
    await page.getByLabel('Expires').fill('2026-06-01T12:00:00');
    await page.getByRole('button', { name: 'Save' }).click();
    await heading('Loyalty app v2');
    const key = await one<{ scopes: string; rate_limit: string; expires_at: unknown }>(
      "select scopes, rate_limit, expires_at from api_keys where name = 'Loyalty app v2'",
    );
    expect(key?.rate_limit).toBe('30/min');
    expect(JSON.stringify(key?.scopes)).toContain('orders:read');
    expect(JSON.stringify(key?.expires_at)).toContain('2026-06-01T12:00:00');
    await page.getByText('API key updated').first().waitFor();
  });

  test('are revoked in bulk: asked once, naming what it affects', async () => {
    await at('#/api-keys?search=storefront');
    await page.getByRole('checkbox', { name: 'Select Storefront (staging)' }).check();
    await page.getByRole('checkbox', { name: 'Select Storefront (production)' }).check();
    await page.getByText('2 selected').waitFor();
    await page.getByRole('button', { name: 'Revoke selected keys' }).click();
    await dialog().getByText('Affects 2 API keys:').waitFor();
    await expect
      .poll(() => dialog().getByRole('listitem').allInnerTexts())
      .toEqual(expect.arrayContaining(['Storefront (staging)', 'Storefront (production)']));
    await dialog().getByRole('button', { name: 'Cancel' }).click();
    expect((await one<{ n: number }>("select count(*) n from api_keys where name like 'Storefront%' and revoked_at is not null"))?.n).toBe(
      0,
    );
    await page.getByRole('button', { name: 'Revoke selected keys' }).click();
    await dialog().getByRole('textbox', { name: 'Reason' }).fill('Moved to a new system');
    await dialog().getByRole('button', { name: 'Revoke', exact: true }).click();
    await said(/revoked/);
    await expect.poll(() => row(page, 'Storefront (staging)').getByText('revoked').count()).toBe(1);
    await sealEntries(shop.db, { wait: true });
    const [entry] = await shop.db.query<{ actor_name: string }>(
      "select actor_name from audit_entries where action = 'api_key.revoked' order by seq desc limit 1",
    );
    expect(entry?.actor_name).toBe(STAFF);
  });

  test('are not rotated here: the new value would be shown to staff, and it is for the owner', async () => {
    await at('#/api-keys?search=GitHub+Actions');
    await page.locator('tbody').getByRole('link').first().click();
    await page.getByRole('button', { name: 'Revoke', exact: true }).waitFor();
    await expect.poll(() => page.getByRole('button', { name: /rotate/i }).count()).toBe(0);
  });

  test('one hundred thousand of them stay quick to page, search and select', async () => {
    await shop.db.query(
      `insert into api_keys (id, owner_id, name, prefix, digest, scopes, created_at)
       with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000)
       select printf('01900000-0000-7000-8000-%012x', i), (select id from users where username = 'felix'), 'bulk ' || i, printf('p%011d', i),
              printf('%064x', i), '["orders:read"]', '2026-01-01T00:00:00.000Z' from n`,
    );
    await at('#/api-keys');
    const began = performance.now();
    await page.getByRole('button', { name: 'Next page' }).click();
    await row(page, 'bulk 99950').waitFor();
    await page.getByRole('searchbox', { name: 'Search' }).fill('bulk 77777');
    await row(page, 'bulk 77777').waitFor();
    // Generous, because the machine is shared; an unpaged list would take minutes.
    expect(performance.now() - began).toBeLessThan(60_000);
    await page.getByRole('searchbox', { name: 'Search' }).fill('');
    await row(page, 'Old scanner').waitFor();
    await page.getByRole('button', { name: 'Next page' }).click();
    await row(page, 'bulk 99950').waitFor();
    await page.getByRole('button', { name: 'Previous page' }).click();
    await row(page, 'Old scanner').waitFor();
    await shop.db.query("delete from api_keys where name like 'bulk %' and id > '01900000-0000-7000-8000-0000000001c2'");
  });

  test('several hundred are revoked in batches, with progress, and what was stopped is left alone', async () => {
    await at('#/api-keys?search=bulk&size=100');
    await row(page, 'bulk 450').waitFor();
    await page.getByRole('checkbox', { name: 'Select all on this page' }).check();
    await page.getByRole('button', { name: /^Select all/ }).click();
    await page.getByText('450 selected').waitFor();
    let batches = 0;
    await page.route('**/actions/revoke', async (route) => {
      batches += 1;
      // The third batch waits for the click on Stop, so that the test knows where it stops.
      if (batches === 3) await page.getByRole('button', { name: 'Stop' }).click();
      await route.continue();
    });
    await page.getByRole('button', { name: 'Revoke selected keys' }).click();
    await dialog().getByText('and 445 more').waitFor();
    await dialog().getByRole('button', { name: 'Revoke', exact: true }).click();
    await dialog().getByRole('status').filter({ hasText: '300 of 450 API keys done; stopped before the other 150.' }).waitFor();
    await dialog().getByRole('button', { name: 'Close' }).last().click();
    await page.unroute('**/actions/revoke');
    expect((await one<{ n: number }>("select count(*) n from api_keys where name like 'bulk %' and revoked_at is not null"))?.n).toBe(300);
    await shop.db.query("delete from api_keys where name like 'bulk %'");
  });
});

describe('endpoints', () => {
  test('are created with the URL policy’s answer at the field; the secret is shown once and then gone', async () => {
    await at('#/endpoints');
    await page.getByRole('link', { name: 'New endpoint' }).click();
    await heading('New endpoint');
    await pick(page, 'Owner', 'ada', 'ada');
    await page.getByRole('textbox', { name: 'URL' }).fill('ftp://acme.example/in');
    await page.locator('#field-events').fill('order.*');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Create endpoint' }).click();
    await expect.poll(() => page.getByRole('textbox', { name: 'URL' }).getAttribute('aria-invalid')).toBe('true');
    await page.getByRole('textbox', { name: 'URL' }).fill('https://new.acme.example/in');
    await page.getByRole('button', { name: 'Create endpoint' }).click();
    const secret = await readSecret();
    await page.getByRole('heading', { level: 1, name: /new\.acme\.example/ }).waitFor();
    await expectForgotten(secret);
  });

  test('get a new signing secret, shown once, by a record’s own action', async () => {
    await at('#/endpoints?search=new.acme');
    await page.locator('tbody').getByRole('link').first().click();
    await page.getByRole('button', { name: 'Rotate the signing secret' }).click();
    await dialog().getByRole('button', { name: 'Rotate', exact: true }).click();
    await expectForgotten(await readSecret());
  });

  test('that fail are enabled again, their failures cleared', async () => {
    await at('#/endpoints?search=legacy');
    await page.locator('tbody').getByText('disabled').first().waitFor();
    await page.locator('tbody').getByRole('link').first().click();
    await page.getByRole('button', { name: 'Enable and clear failures' }).click();
    await dialog().getByText('legacy.acme.example/notify').first().waitFor();
    await dialog().getByRole('button', { name: 'Enable and clear failures' }).click();
    await said(/enabled/);
    const endpoint = await one<{ is_active: unknown; consecutive_failures: number }>(
      "select is_active, consecutive_failures from webhook_endpoints where description = 'Legacy notifier'",
    );
    expect(endpoint).toMatchObject({ is_active: expect.toBeOneOf([true, 1]), consecutive_failures: 0 });
  });

  test('are disabled with the number that fails said before and after; recovering begins where the failures begin', async () => {
    await at('#/endpoints?search=warehouse');
    await page.locator('tbody').getByRole('link').first().click();
    await page.getByRole('button', { name: 'Send missed events' }).click();
    await expect.poll(() => dialog().getByLabel('Since').inputValue()).toMatch(/^2026-03-10T/);
    await dialog()
      .getByText(/\d+ deliveries will be queued\..* "Retry all waiting now" is for that\./)
      .waitFor();
    await dialog().getByLabel('Since').fill('2026-03-12T14:31:59');
    await dialog()
      .getByText(/^0 deliveries will be queued/)
      .waitFor();
    await dialog().getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Retry all waiting now' }).click();
    await dialog()
      .getByText(/deliver(?:y|ies) will be tried now\.$/)
      .waitFor();
    await dialog().getByRole('button', { name: 'Cancel' }).click();
    const waiting = (
      await one<{ n: number }>(
        "select count(*) n from webhook_deliveries where status = 'pending' and endpoint_id = (select id from webhook_endpoints where description = 'Warehouse picking')",
      )
    )?.n;
    await page.getByRole('button', { name: 'Disable', exact: true }).click();
    await dialog().getByText('Nothing more is sent to it').waitFor();
    await dialog().getByText(`${waiting} deliveries will fail.`).waitFor();
    await dialog().getByRole('button', { name: 'Disable', exact: true }).click();
    await said(`1 endpoint disabled. ${waiting} waiting deliveries failed.`);
    await page.getByRole('button', { name: 'Enable and clear failures' }).click();
    await dialog().getByRole('button', { name: 'Enable and clear failures' }).click();
    await said('1 endpoint enabled.');
    // One message at a time, the newest, and below what is asked next.
    const message = page.getByRole('alert');
    await expect.poll(() => message.count()).toBe(1);
    await page.getByRole('button', { name: 'Disable', exact: true }).click();
    await dialog().waitFor();
    const { x, y, width, height } = (await message.boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
    const top = `document.elementFromPoint(${x + width / 2}, ${y + height / 2}).closest('[role=alert]') === null`;
    expect(await page.evaluate(top)).toBe(true);
    await dialog().getByRole('button', { name: 'Cancel' }).click();
  });

  test('show their health over time and are edited', async () => {
    await at('#/endpoints?search=warehouse');
    await page.locator('tbody').getByRole('link').first().click();
    await page.getByRole('slider').first().waitFor();
    await at('#/endpoints?search=new.acme');
    await page.locator('tbody').getByRole('link').first().click();
    await page.getByRole('link', { name: 'Edit' }).click();
    await page.getByRole('textbox', { name: 'Description' }).fill('Kept for the audit');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Kept for the audit').first().waitFor();
  });
});

/** Reads the secret off its dialog, copies it, and closes the dialog. */
async function readSecret(looks = /^whsec_/): Promise<string> {
  const box = dialog().getByRole('textbox');
  await box.waitFor();
  const secret = await box.inputValue();
  expect(secret).toMatch(looks);
  await page.keyboard.press('Escape');
  await dialog().getByRole('button', { name: 'Copy' }).click();
  await dialog().getByText('Copied.').waitFor();
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(secret);
  admin.answers.length = 0;
  await dialog().getByRole('button', { name: 'I have stored it' }).click();
  await dialog().waitFor({ state: 'hidden' });
  return secret;
}

/** Nowhere in the page, in its storage, in its address or in any answer that comes after it was shown. */
async function expectForgotten(secret: string): Promise<void> {
  const record = new URL(page.url()).hash;
  await settled(page);
  expect(await page.content()).not.toContain(secret);
  expect(await page.evaluate('[...document.querySelectorAll("input, textarea")].map((field) => field.value).join(" ")')).not.toContain(
    secret,
  );
  expect(await page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href, history.state])')).not.toContain(
    secret,
  );
  const list = record.split('/').slice(0, 2).join('/');
  for (const view of [list, record, `${record}/edit`, '#/audit-log', '#/']) {
    await at(view);
    // A view that is left before its answers are there has none to look at.
    await settled(page);
  }
  await expect.poll(async () => admin.answers.length).toBeGreaterThan(3);
  expect(admin.answers.filter(({ body }) => body.includes(secret)).map(({ url }) => url)).toEqual([]);
}

describe('deliveries', () => {
  test('are filtered by an endpoint that is picked by name, and by a type of event that is offered', async () => {
    await at('#/deliveries');
    await page.getByRole('button', { name: 'Add filter' }).click();
    await page.getByLabel('Filter by').selectOption({ label: 'Endpoint' });
    await pick(page, 'Value', 'crm.north', 'crm.northwind.example');
    await page.getByRole('button', { name: 'Apply' }).click();
    const endpoint = await one<{ id: string }>("select id from webhook_endpoints where description = 'CRM sync'");
    await expect.poll(() => page.evaluate('location.hash')).toBe(`#/deliveries?filter.endpoint=${endpoint?.id ?? ''}`);
    const type = page.getByRole('search').getByLabel('Event type');
    const offered = 'document.getElementById(document.activeElement.getAttribute("list")).innerHTML';
    await type.focus();
    expect(await page.evaluate(offered)).toContain('order.cancelled');
    await type.fill('order.paid');
    const types = async () => (await page.locator('tbody tr td:nth-child(2)').allInnerTexts()).map((text) => text.split('\n')[0]);
    await expect.poll(async () => [...new Set(await types())]).toEqual(['order.paid']);
  });

  test('are filtered, and an attempt shows its request, the answer and how long it took', async () => {
    await at('#/deliveries');
    await page.getByLabel('Status').selectOption('failed');
    await expect
      .poll(
        async () =>
          (await page.locator('tbody').getByText('failed', { exact: true }).count()) ===
          (await page.locator('tbody').getByRole('row').count()),
      )
      .toBe(true);
    await page.locator('tbody').getByRole('link').first().click();
    await page
      .getByRole('button', { name: /^Details of/ })
      .first()
      .click();
    await page
      .getByText(/This integration was retired|recovery mode|No answer within/)
      .first()
      .waitFor();
  });

  test('are sent again for a selection, and arrive', async () => {
    await at('#/deliveries?filter.status=failed');
    const failed = (await one<{ n: number }>("select count(*) n from webhook_deliveries where status = 'failed'"))?.n ?? 0;
    await page.getByRole('checkbox', { name: 'Select all on this page' }).check();
    await page.getByRole('button', { name: 'Send again' }).click();
    await dialog().getByText(`Affects ${failed} deliveries:`).waitFor();
    await dialog().getByRole('button', { name: 'Send again' }).click();
    await said(/./);
    expect(
      (await one<{ n: number }>("select count(*) n from webhook_deliveries where status = 'pending' and attempts = 0"))?.n,
    ).toBeGreaterThanOrEqual(failed);
    await deliverDue(shop.db);
  });

  test('one behind another of its ordering key says that it is held, for what, and lets the other one go first', async () => {
    const endpoint = await one<{ id: string; owner_id: string }>(
      "select id, owner_id from webhook_endpoints where description = 'Acme storefront'",
    );
    const ids: string[] = [];
    for (let count = 0; count < 2; count += 1) {
      const event = await shop.db.transaction((tx) =>
        publish(tx, 'order.placed', { order: 'BL-held' }, { owner: endpoint?.owner_id ?? '', orderingKey: 'order-77' }),
      );
      const delivery = await one<{ id: string }>('select id from webhook_deliveries where event_id = $1 and endpoint_id = $2', [
        event.id,
        endpoint?.id ?? '',
      ]);
      ids.push(delivery?.id ?? '');
    }
    const [first = '', second = ''] = ids;
    await shop.db.query('update webhook_deliveries set attempts = 2, next_attempt_at = $2 where id = $1', [
      first,
      '2026-03-13T00:00:00.000Z',
    ]);
    await at(`#/deliveries?filter.endpoint=${endpoint?.id ?? ''}`);
    await page.getByLabel('Status').selectOption('held');
    await expect.poll(() => page.locator('tbody').getByRole('row').count()).toBe(1);
    await page.locator('tbody').getByRole('link').first().click();
    await page.getByRole('note').getByText('Nothing is sent yet').waitFor();
    // No time that has passed as the next attempt, and not only that nothing was sent.
    const facts = page.getByRole('main');
    await facts.getByText('held', { exact: true }).first().waitFor();
    await facts.getByText('Waits for', { exact: true }).waitFor();
    await page.getByText('Nothing was sent yet: it waits for an earlier delivery.').waitFor();
    await expect.poll(() => page.getByRole('button', { name: 'Send again' }).count()).toBe(0);
    await page.getByRole('button', { name: 'Send the earlier one now' }).click();
    await dialog().getByRole('button', { name: 'Send the earlier one' }).click();
    await said('1 earlier delivery queued again.');
    await page.getByRole('note').getByRole('link').click();
    await expect.poll(async () => new URL(page.url()).hash).toBe(`#/deliveries/${first}`);
    await page.getByRole('heading', { name: 'Timeline', exact: true }).waitFor();
    await page.getByText('planned for').first().waitFor();
    await page.getByRole('button', { name: 'Copy As curl' }).click();
    expect(await page.evaluate('navigator.clipboard.readText()')).toContain("curl -X POST 'https://hooks.acme.example/orders'");
    await shop.db.query('delete from webhook_deliveries where id in ($1, $2)', [first, second]);
  });

  test('follow changes by themselves while the list is live', async () => {
    await at('#/deliveries');
    expect(await page.getByRole('switch', { name: 'Live' }).isChecked()).toBe(true);
    const newest = await one<{ id: string }>("select id from webhook_deliveries where status = 'succeeded' order by id desc limit 1");
    const shown = page.getByRole('row').filter({ has: page.locator(`a[href$="${newest?.id ?? ''}"]`) });
    await shown.getByText('succeeded').waitFor();
    await shop.db.query("update webhook_deliveries set status = 'failed', failure_reason = 'timeout' where id = $1", [newest?.id ?? '']);
    await shown.getByText('failed').waitFor();
  });
});

describe('events', () => {
  test('are searched by id, type and audience, and show their payload', async () => {
    const event = await one<{ id: string; data: string }>(
      "select id, data from webhook_events where type = 'order.paid' order by id desc limit 1",
    );
    await at('#/events');
    await page
      .locator('tbody')
      .getByText(/^\d of \d$/)
      .first()
      .waitFor();
    await page.getByRole('searchbox', { name: 'Search' }).fill(event?.id ?? '');
    await expect.poll(() => page.locator('tbody').getByRole('row').count()).toBe(1);
    await page.locator('tbody').getByRole('link').first().click();
    await heading(/order\.paid/);
    await page
      .getByText((JSON.parse(event?.data ?? '{}') as { order: string }).order)
      .first()
      .waitFor();
    await page.getByRole('button', { name: 'Copy Payload' }).click();
    expect(await page.evaluate('navigator.clipboard.readText()')).toContain('BL-');
  });

  test('without an audience get one, and are asked for what it needs', async () => {
    await at('#/events?filter.audience=none');
    await page.locator('tbody').getByRole('link').first().click();
    await page.getByRole('button', { name: 'Assign an audience' }).click();
    await dialog().getByRole('combobox', { name: 'Audience' }).selectOption('owner');
    await pick(dialog(), 'Owner', 'grac', 'grace');
    await dialog().getByRole('button', { name: 'Assign', exact: true }).click();
    await said(/./);
    expect((await one<{ n: number }>('select count(*) n from webhook_events where audience is null'))?.n).toBe(0);
  });
});

describe('users', () => {
  test('are deactivated and activated, and get and lose the staff flag', async () => {
    const state = () => one<{ is_active: unknown; is_staff: unknown }>("select is_active, is_staff from users where username = 'linus'");
    await at('#/users?search=linus');
    await page.getByRole('link', { name: 'linus', exact: true }).click();
    for (const [action, expected] of [
      ['Deactivate', { is_active: false }],
      ['Activate', { is_active: true }],
      ['Make staff', { is_staff: true }],
      ['Remove staff', { is_staff: false }],
    ] as const) {
      await page.getByRole('button', { name: action, exact: true }).click();
      await dialog().getByText('linus').first().waitFor();
      await dialog().getByRole('button', { name: action, exact: true }).click();
      await dialog().waitFor({ state: 'hidden' });
      const now = await state();
      expect({ is_active: Boolean(now?.is_active), is_staff: Boolean(now?.is_staff) }).toMatchObject(expected);
    }
  });

  test('the page of one has their keys, endpoints, sessions and groups, and leads to them', async () => {
    const grace = await one<{ id: string }>("select id from users where username = 'grace'");
    const roasters = await createGroup(shop.db, { name: 'roasters', tenantKey: null });
    await addGroupMember(shop.db, roasters.id, grace?.id ?? '');
    await at(`#/users/${grace?.id ?? ''}`);
    const part = (name: string) => page.getByRole('region', { name, exact: true });
    await page.getByText('Not logged in anywhere.').waitFor();
    await part('Groups').getByRole('link', { name: 'roasters' }).waitFor();
    await part('Endpoints')
      .getByRole('link', { name: /crm\.northwind/ })
      .first()
      .waitFor();
    await part('API keys').getByRole('link', { name: 'Spreadsheet add-on' }).click();
    await heading('Spreadsheet add-on');
  });

  test('users cannot deactivate themselves: the dialog names the refused one before, and the others are done', async () => {
    await at('#/users?filter.staff=yes');
    await page.getByRole('checkbox', { name: 'Select all on this page' }).check();
    await page.getByRole('button', { name: 'Deactivate', exact: true }).click();
    await dialog()
      .getByText(/^1 user will be deactivated, 1 cannot: olivia is your own account/)
      .waitFor();
    await dialog().getByRole('button', { name: 'Deactivate 1 user' }).click();
    await page.getByText('1 user deactivated.').waitFor();
  });
});

describe('the audit log', () => {
  test('says who did what to which record, and leads there', async () => {
    await at('#/audit-log?filter.action=api_key.updated');
    const entry = page.locator('tbody').getByRole('row').first();
    await entry.getByRole('link', { name: STAFF, exact: true }).waitFor();
    await entry.getByRole('link', { name: 'Loyalty app v2', exact: true }).click();
    await heading('Loyalty app v2');
    await page.goBack();
    await page.locator('tbody').getByRole('link').first().click();
    await page.getByText('Rate limit').first().waitFor();
    await page.getByRole('region', { name: 'Changes' }).getByRole('row').filter({ hasText: 'Rate limit' }).getByText('30/min').waitFor();
    await expect.poll(() => page.getByRole('link', { name: 'Edit' }).count()).toBe(0);
    await expect.poll(() => page.getByRole('button', { name: 'Delete' }).count()).toBe(0);
  });
});

describe('a table of the application’s own', () => {
  test('is listed, searched, edited, created and deleted from its model alone', async () => {
    await at('#/products');
    await page.getByRole('searchbox', { name: 'Search' }).fill('Sencha');
    await expect.poll(() => page.locator('tbody').getByRole('row').count()).toBe(1);
    await page.locator('tbody').getByRole('link').first().click();
    await page.getByRole('link', { name: 'Edit' }).click();
    await page.getByRole('textbox', { name: 'Stock' }).fill('77');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('77', { exact: true }).first().waitFor();
    await at('#/products/-/new');
    await page.getByRole('textbox', { name: 'Name' }).fill('Gyokuro');
    await page.getByRole('textbox', { name: 'Sku' }).fill('BL-900');
    await page.getByRole('textbox', { name: 'Price' }).fill('24.50');
    await page.getByRole('textbox', { name: 'Stock' }).fill('5');
    await page.getByRole('button', { name: /^Create/ }).click();
    await page.getByText('BL-900').first().waitFor();
    expect(await one("select price from products where sku = 'BL-900'")).toMatchObject({ price: '24.50' });
    await page.getByRole('button', { name: 'Delete' }).click();
    await dialog().getByRole('button', { name: 'Delete' }).click();
    await expect.poll(async () => (await one<{ n: number }>("select count(*) n from products where sku = 'BL-900'"))?.n).toBe(0);
  });
});

describe('forms and lists', () => {
  test('a form with changes is not left without a question: by a link, by Cancel, or by the way back', async () => {
    await at('#/products?search=Huila');
    await page.locator('tbody').getByRole('link').first().click();
    await page.getByRole('link', { name: 'Edit' }).click();
    const stock = page.getByRole('textbox', { name: 'Stock' });
    await stock.fill('31');
    for (const leave of [
      () => page.getByRole('link', { name: 'Users' }).click(),
      () => page.getByRole('button', { name: 'Cancel' }).click(),
      () => page.goBack(),
    ]) {
      await leave();
      await dialog().getByText('Discard the changes?').waitFor();
      await dialog().getByRole('button', { name: 'Stay on this page' }).click();
      await expect.poll(() => stock.inputValue()).toBe('31');
    }
    // Closing the tab, or another address: what was typed is stored, and the browser need not ask.
    const asks = "!dispatchEvent(new Event('beforeunload', { cancelable: true }))";
    expect(await page.evaluate(asks)).toBe(false);
    expect(await page.evaluate('JSON.stringify({ ...localStorage })')).toContain('31');
    await page.getByRole('link', { name: 'Users' }).click();
    await dialog().getByRole('button', { name: 'Discard' }).click();
    await heading('Users');
    await at('#/products?search=Huila');
    await page.locator('tbody').getByRole('link').first().click();
    await page.getByRole('link', { name: 'Edit' }).click();
    await stock.fill('32');
    await page.getByRole('button', { name: 'Save' }).click();
    await heading('Huila');
    await expect.poll(() => dialog().count()).toBe(0);
    expect(await page.evaluate(asks)).toBe(false);
  });

  test('the title of a row shows where the focus is', async () => {
    await at('#/users');
    await page.getByRole('checkbox', { name: 'Select grace' }).focus();
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement?.textContent')).toBe('grace');
    const outline = '(({ outlineStyle, outlineWidth }) => `${outlineStyle} ${outlineWidth}`)(getComputedStyle(document.activeElement))';
    await expect.poll(() => page.evaluate(outline)).toBe('solid 2px');
  });

  test('the page of one key shows one key', async () => {
    await at('#/api-keys?search=Warehouse+scanner');
    await page.locator('tbody').getByRole('link').first().click();
    await page.getByRole('button', { name: 'Revoke', exact: true }).click();
    await dialog().getByText('The key stops working immediately and permanently.').waitFor();
    await dialog().getByRole('button', { name: 'Cancel' }).click();
  });
});

describe('getting around', () => {
  test('Ctrl-K goes to a list or to a record that is found by its name, by keyboard alone; a slash goes to the search', async () => {
    await at('#/');
    await page.keyboard.press('Control+k');
    await dialog().getByRole('combobox').fill('grace');
    await dialog()
      .getByRole('option', { name: /^grace/ })
      .waitFor();
    while (!(await dialog().getByRole('option', { selected: true }).innerText()).startsWith('grace'))
      await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await heading('grace');
    await page.getByRole('heading', { name: 'Endpoints', level: 2, exact: true }).waitFor();
    await page.keyboard.press('Control+k');
    await dialog().getByRole('combobox').fill('deliv');
    await page.keyboard.press('Enter');
    await heading('Deliveries');
    await page.keyboard.press('/');
    await expect.poll(() => page.evaluate('document.activeElement?.type')).toBe('search');
  });

  test('columns are chosen and stay so; nothing but the preference is stored', async () => {
    await at('#/users');
    const header = () => page.locator('thead').innerText();
    expect(await header()).toContain('E-mail');
    await page.getByRole('button', { name: 'Choose the columns' }).click();
    await page.getByRole('checkbox', { name: 'E-mail' }).uncheck();
    await page.keyboard.press('Escape');
    await expect.poll(header).not.toContain('E-mail');
    await page.reload();
    await row(page, 'grace').waitFor();
    expect(await header()).not.toContain('E-mail');
    expect(await page.evaluate('Object.keys(localStorage).every((key) => key.startsWith("kit-admin-"))')).toBe(true);
    await page.evaluate('localStorage.clear()');
  });

  test('new records wait until they are asked for: rows do not move under the pointer', async () => {
    await at('#/deliveries');
    const first = () => page.locator('tbody').getByRole('link').first().getAttribute('href');
    const before = await first();
    const owner = await one<{ owner_id: string }>("select owner_id from webhook_endpoints where description = 'Acme storefront'");
    await shop.db.transaction((tx) => publish(tx, 'order.placed', { order: 'BL-new' }, { owner: owner?.owner_id ?? '' }));
    const show = page.getByRole('button', { name: /^\d+ new: show$/ });
    await show.waitFor();
    expect(await first()).toBe(before);
    await show.click();
    await expect.poll(first).not.toBe(before);
  });

  test('the menu says the role and the time zone', async () => {
    await at('#/');
    await page.getByRole('button', { name: STAFF }).click();
    await page.getByText('Administrator · times in UTC').waitFor();
    await page.keyboard.press('Escape');
  });
});

describe('the way back and forth', () => {
  test('through lists, records and forms is the browser’s own', async () => {
    await at('#/users');
    await page.getByRole('link', { name: 'grace', exact: true }).click();
    await heading('grace');
    await page.goBack();
    await heading('Users');
    await page.goForward();
    await heading('grace');
    expect(await page.evaluate('document.activeElement?.tagName')).toBe('H1');
    await at('#/no-such-list');
    await heading('Page not found');
    await at('#/users/01900000-0000-7000-8000-000000000000');
    await page.getByRole('alert').filter({ hasText: 'does not exist' }).waitFor();
  });
});
