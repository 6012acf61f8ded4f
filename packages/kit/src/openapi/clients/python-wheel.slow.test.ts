import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { pythonWheel, wheelFault } from './python-wheel.ts';

const folder = mkdtempSync(join(tmpdir(), 'kit-wheel-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const PYTHON = ['python3', '/usr/bin/python3'].find((each) => spawnSync(each, ['--version']).status === 0);

test.skipIf(PYTHON === undefined && process.env['KIT_REQUIRE_PYTHON'] === undefined)(
  'a wheel has the names, hashes and sizes that installers verify, and Python imports it',
  () => {
    const { file, bytes } = pythonWheel('"""ü"""\nVALUE = 7\n', { name: 'Acme-API', version: '1.4.0', title: 'Acme' });
    writeFileSync(join(folder, file), bytes);
    const script = `
import base64, csv, hashlib, importlib.metadata, io, sys, zipfile
wheel = sys.argv[1]
with zipfile.ZipFile(wheel) as archive:
    assert archive.testzip() is None
    rows = list(csv.reader(io.StringIO(archive.read("acme_api-1.4.0.dist-info/RECORD").decode())))
    assert sorted(row[0] for row in rows) == sorted(archive.namelist())
    for name, digest, size in rows:
        if digest:
            data = archive.read(name)
            assert len(data) == int(size)
            assert digest == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
sys.path.insert(0, wheel)
import acme_api
(found,) = importlib.metadata.distributions(path=[wheel])
print(file := acme_api.VALUE, acme_api.__doc__, found.metadata["Name"], found.version)
`;
    const { stdout, stderr } = spawnSync(PYTHON!, ['-c', script, join(folder, file)], {
      encoding: 'utf8',
      env: { ...process.env, PYTHONIOENCODING: 'utf-8' },
    });
    expect([stderr, stdout.trim()]).toEqual(['', '7 ü Acme-API 1.4.0']);
    expect(file).toBe('acme_api-1.4.0-py3-none-any.whl');
  },
);

test('names and versions that pip would reject are faults', () => {
  for (const name of ['', 'a b', '../a', 'é', '-a', 'a-']) expect(wheelFault(name, '1.0.0')).toContain('is not a name');
  for (const version of ['', 'v1', '1.0-beta', 'today']) expect(wheelFault('acme', version)).toContain('is not a version');
  for (const version of ['1', '1.4.0', '2.0.0rc1', '1!2.0', '1.0.post1', '1.0+local.1'])
    expect(wheelFault('acme', version)).toBeUndefined();
});
