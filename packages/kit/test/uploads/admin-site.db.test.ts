import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { admin } from '../../src/admin/index.ts';
import { accounts } from '../../src/contrib/accounts/index.ts';
import { diskStore, s3Store, UploadController, uploads } from '../../src/contrib/uploads/index.ts';
import { testApp } from '../../src/testing/index.ts';

test('the page of the admin site may send files to the store, and to nobody else', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'kit-admin-csp-'));
  const credentials = { accessKeyId: 'id', secretAccessKey: 'secret' };
  const stores = [
    [diskStore({ folder }), "'self'"],
    [diskStore({ folder, baseUrl: 'https://files.example.com/x' }), "'self' https://files.example.com"],
    [s3Store({ region: 'eu-central-1', bucket: 'invoices', credentials }), "'self' https://invoices.s3.eu-central-1.amazonaws.com"],
  ] as const;
  for (const [store, expected] of stores) {
    await using app = await testApp({
      modules: [accounts(), uploads({ store, cleanEverySeconds: 0 }), admin()],
      mount: { '/v1': { '/files': UploadController } },
    });
    const policy = String((await app.inject('/admin/')).headers['content-security-policy']);
    expect(/connect-src ([^;]+);/.exec(policy)?.[1]).toBe(expected);
    expect(policy).toContain("img-src 'self' data:;");
  }
  await rm(folder, { recursive: true, force: true });
});
