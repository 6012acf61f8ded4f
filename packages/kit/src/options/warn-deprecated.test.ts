import { expect, test } from 'vitest';
import { type DeprecationCode, type DeprecationNotice, deprecationNotices } from './deprecation-codes.ts';
import { warnDeprecated } from './warn-deprecated.ts';

test('a deprecated use gives a DeprecationWarning with its code, once per process, that contains since when and what to do', async () => {
  const given: (Error & { code?: string; detail?: string })[] = [];
  const listener = (warning: Error) => void given.push(warning);
  const notices: Readonly<Record<DeprecationCode, DeprecationNotice>> = {
    KIT_DEP9998: { title: 'old()', since: '0.1.0', removal: '1.0.0', remedy: 'Call `current()`.' },
    KIT_DEP9999: { title: 'older()', since: '0.2.0', removal: '2.0.0', remedy: 'Remove it.' },
  };
  process.on('warning', listener);
  try {
    for (const code of ['KIT_DEP9998', 'KIT_DEP9999', 'KIT_DEP9998'] as const) warnDeprecated(code, notices);
    // Node emits warnings with process.nextTick.
    await new Promise((done) => setImmediate(done));
  } finally {
    process.off('warning', listener);
  }
  const ours = given.filter(({ code }) => code?.startsWith('KIT_DEP') === true);
  expect(ours.map(({ name, code, message, detail }) => [name, code, message, detail])).toEqual([
    [
      'DeprecationWarning',
      'KIT_DEP9998',
      'old() is deprecated since 0.1.0 and goes away in 1.0.0. Call `current()`.',
      'docs/reference/deprecations.md',
    ],
    [
      'DeprecationWarning',
      'KIT_DEP9999',
      'older() is deprecated since 0.2.0 and goes away in 2.0.0. Remove it.',
      'docs/reference/deprecations.md',
    ],
  ]);
});

test('codes are numbered without gaps and never reused', () => {
  expect(Object.keys(deprecationNotices)).toEqual(
    Object.keys(deprecationNotices).map((_, index) => `KIT_DEP${String(index + 1).padStart(4, '0')}`),
  );
});
