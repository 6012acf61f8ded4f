import { keyEntry, newKey } from '../db/sealing/key-list.ts';
import type { SettingsInput } from '../app/declare/config.ts';

let made: SettingsInput | undefined;

/** Keys of encrypted columns: the same for every app of the process, because apps of one test may share a database. */
export function testDataKeys(): SettingsInput {
  return (made ??= { dataKeys: keyEntry(newKey('test')), dataSearchKeys: keyEntry(newKey('test')) });
}
