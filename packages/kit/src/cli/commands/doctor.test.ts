import { expect, test } from 'vitest';
import { nodeVersion } from './doctor.ts';

test('a Node that this version was not tested with is found', () => {
  for (const version of ['22.19.0', '24.15.0', '26.1.0']) expect(nodeVersion(version)).toMatchObject({ state: 'ok', detail: version });
  for (const version of ['20.20.2', '23.0.0', '28.0.0']) expect(nodeVersion(version)).toMatchObject({ id: 'W016', state: 'warning' });
});
