import { text as read } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { lockRows } from '../../../../test/lock-rows.ts';
import { uploadApp } from '../../../../test/uploads/upload-app.ts';
import type { AuditEntry } from '../../../auth/request/audit-sink.ts';
import type { EventEntry } from '../../../app/declare/registry.ts';
import { describeDatabases } from '../../../testing/index.ts';
import { processUploads } from './clean.ts';
import type { Scan } from '../declare/scanner.ts';

const text = Buffer.from('hello, world');

describeDatabases('quarantine', (database) => {
  const start = (scan: Scan, more: Parameters<typeof uploadApp>[0] = {}) => uploadApp({ database: database.db, scan, ...more });

  test('a file is scanned once, with exactly the bytes that are handed out', async () => {
    const scanned: string[] = [];
    await using app = await start(async (file) => {
      scanned.push(await read(await file.read()));
      return { clean: true };
    });
    await app.upload(text);
    const reports = await Promise.all([processUploads(app.db), processUploads(app.db), processUploads(app.db)]);
    expect(reports.reduce((sum, report) => sum + report.scanned, 0)).toBe(1);
    expect(scanned).toEqual(['hello, world']);
  });

  test.each([undefined, null, true, 'clean', {}, { clean: 'yes' }, { clean: false }])(
    'a scan that returned %j has not said that a file is clean: it stays in quarantine and is scanned again',
    async (wrong) => {
      let verdict: unknown = wrong;
      await using app = await start(async () => verdict as never);
      const { body } = await app.upload(text);
      expect(await processUploads(app.db)).toMatchObject({ scanned: 0, failed: 1 });
      expect(await app.call('GET', `/v1/uploads/${body.id}`)).toMatchObject({ body: { state: 'quarantined' } });
      verdict = { clean: true };
      app.clock.advance(3_600_000);
      await processUploads(app.db);
      expect(await app.call('GET', `/v1/uploads/${body.id}`)).toMatchObject({ body: { state: 'complete' } });
    },
  );

  test.skipIf(database.dialect === 'sqlite').each(['clean', 'infected'])(
    'an upload that another transaction has locked does not hold up the scans of others (%s)',
    async (found) => {
      let lock: (() => Promise<void>) | undefined;
      let first: string | undefined;
      await using app = await start(async ({ id }) => {
        first ??= id;
        if (id === first) lock ??= await lockRows(app.db, 'uploads', [id]);
        return found === 'clean' ? { clean: true } : { clean: false, reason: 'Worm' };
      });
      for (let n = 0; n < 3; n += 1) await app.upload(text);
      expect(await processUploads(app.db)).toMatchObject({ scanned: 2, failed: 1 });
      await lock?.();
      app.clock.advance(3_600_000);
      expect(await processUploads(app.db)).toMatchObject({ scanned: 1, failed: 0 });
    },
  );

  test('a deleted file is not brought back by a late verdict', async () => {
    let release = (): void => undefined;
    const waits = new Promise<void>((resolve) => (release = resolve));
    await using app = await start(async () => {
      await waits;
      return { clean: true };
    });
    const { body } = await app.upload(text);
    const processing = processUploads(app.db);
    expect(await app.call('DELETE', `/v1/uploads/${body.id}`)).toMatchObject({ status: 204 });
    release();
    await processing;
    expect(await app.call('GET', `/v1/uploads/${body.id}`)).toMatchObject({ status: 404 });
    expect(await app.files()).toEqual([]);
  });

  test('every change has an audit entry and an event, in its transaction, and name no keys of the store', async () => {
    const entries: AuditEntry[] = [];
    const events: EventEntry[] = [];
    const sink = {
      name: 'sink',
      provides: () => ({
        audit: { record: async (_tx: unknown, added: readonly AuditEntry[]) => void entries.push(...added) },
        events: { publish: async (_tx: unknown, added: readonly EventEntry[]) => void events.push(...added) },
      }),
    };
    let verdict: Awaited<ReturnType<Scan>> = { clean: true };
    await using app = await start(async () => verdict, { modules: [sink] });
    const first = await app.upload(text);
    await processUploads(app.db);
    verdict = { clean: false, reason: 'Evil\u0007.Worm' };
    const second = await app.upload(text);
    await processUploads(app.db);
    await app.announce(text);
    app.clock.advance(3_600_000);
    await processUploads(app.db);
    await app.call('DELETE', `/v1/uploads/${first.body.id}`);
    expect(
      entries.map(({ action, target_id }) => [action, target_id === first.body.id ? 1 : target_id === second.body.id ? 2 : 3]),
    ).toEqual([
      ['upload.created', 1],
      ['upload.quarantined', 1],
      ['upload.completed', 1],
      ['upload.created', 2],
      ['upload.quarantined', 2],
      ['upload.rejected', 2],
      ['upload.created', 3],
      ['upload.expired', 3],
      ['upload.deleted', 1],
    ]);
    expect(events).toMatchObject([
      { type: 'upload.completed', owner: 'ann', data: { id: first.body.id, state: 'complete', filename: 'a.txt' } },
      { type: 'upload.rejected', owner: 'ann', data: { id: second.body.id, reason: 'The scanner found Evil?.Worm.' } },
    ]);
    expect(JSON.stringify([entries, events])).not.toMatch(/pending\/|final\/|etag/);
  });
});
