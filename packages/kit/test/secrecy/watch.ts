import { afterAll, vi } from 'vitest';
import type * as Key from '../../src/contrib/apikeys/key/key.ts';
import type * as Fernet from '../../src/db/sealing/fernet.ts';
import { takeLeaks, watchProcess } from './watch-process.ts';

// Runs before every test file. Whatever the file's apps log, whatever the programs it starts log or complain of, and whatever its databases
// hold when they are dropped or, in memory, closed is searched for raw API keys, for the secret parts of every key made meanwhile, and for
// webhook signing secrets; one of them found fails the file.

// Several files may run in one process, one after the other. Modules that were loaded for an earlier one still report what they make to the
// mocks of then: there is one set of secrets for all.
const known = vi.hoisted(() => {
  const place = globalThis as { kitKnownSecrets?: { readonly keys: Set<string>; readonly sealed: Set<string> } };
  return (place.kitKnownSecrets ??= { keys: new Set(), sealed: new Set() });
});

vi.mock('../../src/contrib/apikeys/key/key.ts', async (original) => {
  const real = await original<typeof Key>();
  const formatKey: typeof Key.formatKey = (tag, parts) => {
    known.keys.add(parts.secret);
    return real.formatKey(tag, parts);
  };
  return { ...real, formatKey };
});

vi.mock('../../src/db/sealing/fernet.ts', async (original) => {
  const real = await original<typeof Fernet>();
  const encrypt: typeof Fernet.encrypt = (key, message, ...rest) => {
    if (typeof message === 'string') known.sealed.add(message);
    return real.encrypt(key, message, ...rest);
  };
  return { ...real, encrypt };
});

watchProcess(known);

afterAll(() => {
  const found = takeLeaks();
  if (found.length > 0) throw new Error(`secrets were written down:\n${found.slice(0, 20).join('\n')}`);
});
