import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { uploadApp } from '../../../test/uploads/upload-app.ts';
import { describeDatabases } from '../../testing/index.ts';
import { findOrphans, processUploads, removeOrphans } from './clean.ts';

const SCRIPT = join(import.meta.dirname, '../../../test/uploads/crash-process.ts');
const DAY_MS = 86_400_000;

describeDatabases('a process that is killed', (database) => {
  // The moments of a completion, in their order: look, read, copy, [commit], remove.
  test.each(['receive:before', 'receive:after', 'head:after', 'read:after', 'copy:after', 'remove:before', 'remove:after'])(
    'at %s leaves no complete upload without its bytes, and no file that clean-up does not find',
    async (moment) => {
      const folder = await mkdtemp(join(tmpdir(), 'kit-crash-'));
      const child = spawn(process.execPath, ['--conditions=source', SCRIPT, database.url, folder, moment], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      let id = '';
      child.stdout.on('data', (text: Buffer) => (id += text.toString().trim()));
      const [, signal] = (await once(child, 'close')) as [number | null, string | null];
      expect(signal).toBe('SIGKILL');

      await using app = await uploadApp({ database: database.db, folder });
      const read = () => app.call<{ state: string; url?: string }>('GET', `/v1/uploads/${id}`);
      const before = await read();
      const again = await app.call('POST', `/v1/uploads/${id}/complete`);
      // Whatever had arrived can still be completed; what had not is said to be missing.
      expect(again.status).toBe(moment === 'receive:before' ? 409 : 200);
      expect(before.body.state).toBe(moment.startsWith('remove') ? 'complete' : 'pending');
      const { body } = await app.call<{ url?: string }>('GET', `/v1/uploads/${id}?url=true`);
      const bytes = body.url === undefined ? null : (await app.call('GET', body.url, undefined, {})).bytes.toString();
      expect(bytes).toBe(again.status === 200 ? 'hello' : null);
      app.clock.advance(2 * DAY_MS);
      await processUploads(app.db);
      await removeOrphans(app.db, await findOrphans(app.db, 100));
      const files = await app.files();
      expect(files).toHaveLength(again.status === 200 ? 1 : 0);
      expect(files.every((file) => file.includes('/final/'))).toBe(true);
      await rm(folder, { recursive: true, force: true });
    },
  );
});
