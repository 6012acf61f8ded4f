import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';

const vitest = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs');

test('a test file whose app logs a secret or whose database holds one fails, and says where', async () => {
  const config = join(import.meta.dirname, 'fixture', 'vitest.config.ts');
  const { code, output } = await new Promise<{ code: unknown; output: string }>((resolve) =>
    execFile(process.execPath, [vitest, 'run', '--config', config], { env: { ...process.env, NO_COLOR: '1' } }, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, output: stdout + stderr }),
    ),
  );
  expect(output).toMatch(/3 passed/);
  // The harmless file ran first, and in the same process.
  expect(output).toMatch(/✓ before\.ts/);
  expect(code).toBe(1);
  expect(output).toMatch(/the log line .*first leak.* holds an API key, kit_[0-9A-Za-z]{12}_…/);
  expect(output).toMatch(/the log line .*second leak.* holds the secret part of an API key/);
  expect(output).toMatch(/the log line .*third leak.* holds a webhook signing secret/);
  expect(output).toContain('notes.body (sqlite) holds the secret part of an API key');
  expect(output).toContain('passing.body (sqlite, in memory) holds an API key');
  expect(output).toMatch(/the log line of a program .*fourth leak.* holds an API key/);
  expect(output).toMatch(/the log line of a program .*fifth leak.* holds the secret part of an API key/);
  expect(output.match(/what a program wrote to standard error, sixth leak.* holds an API key/g), 'a pipe, and a shared one').toHaveLength(
    2,
  );
  expect(output).not.toMatch(/(on purpose|fine).* holds/);
  expect(output).not.toMatch(/[0-9A-Za-z]{43}/);
});
