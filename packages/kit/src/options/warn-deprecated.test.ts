import { expect, test } from 'vitest';
import { wrapRoute } from '../http/index.ts';
import { route } from '../http/route.ts';
import { allowAny } from '../permissions/index.ts';
import { type DeprecationCode, deprecationNotices } from './deprecation-codes.ts';

/** What a program does that is deprecated, by code. A new code needs a line here, so that every one is known to be given. */
const uses: Readonly<Record<DeprecationCode, () => unknown>> = {
  KIT_DEP0001: () =>
    wrapRoute(
      route.get('/', { permission: allowAny }, () => undefined),
      {},
    ),
};

test('every deprecated use gives a DeprecationWarning with its code, once per process, that says since when and what to do', async () => {
  const given: (Error & { code?: string; detail?: string })[] = [];
  const listener = (warning: Error) => void given.push(warning);
  process.on('warning', listener);
  try {
    for (const use of Object.values(uses)) {
      use();
      use();
    }
    // Node emits warnings with process.nextTick.
    await new Promise((done) => setImmediate(done));
  } finally {
    process.off('warning', listener);
  }
  const ours = given.filter(({ code }) => code?.startsWith('KIT_DEP') === true);
  expect(ours.map(({ name, code }) => [name, code])).toEqual(Object.keys(deprecationNotices).map((code) => ['DeprecationWarning', code]));
  for (const { message, code, detail } of ours) {
    const { since, removal, remedy } = deprecationNotices[code as DeprecationCode];
    expect(message).toContain(`deprecated since ${since} and goes away in ${removal}. ${remedy}`);
    expect(detail).toBe('docs/reference/deprecations.md');
  }
});

test('codes are numbered without gaps and never reused', () => {
  expect(Object.keys(deprecationNotices)).toEqual(
    Object.keys(deprecationNotices).map((_, index) => `KIT_DEP${String(index + 1).padStart(4, '0')}`),
  );
});
