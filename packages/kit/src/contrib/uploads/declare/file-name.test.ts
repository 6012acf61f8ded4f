import fc from 'fast-check';
import { expect, test } from 'vitest';
import { contentDisposition, displayName, safeFileName } from './file-name.ts';

test.each([
  ['report.pdf', 'report.pdf'],
  ['Überweisung März.pdf', 'Uberweisung_Marz.pdf'],
  ['../../etc/passwd', 'passwd'],
  ['..\\..\\windows\\system.ini', 'system.ini'],
  ['/etc/passwd', 'passwd'],
  ['..', 'file'],
  ['.htaccess', 'htaccess'],
  ['a/..', 'file'],
  ['CON', 'file-CON'],
  ['nul.txt', 'file-nul.txt'],
  ['com1.tar.gz', 'file-com1.tar.gz'],
  ['LPT9', 'file-LPT9'],
  ['a\u0000b\r\nSet-Cookie: x.txt', 'abSet-Cookie_x.txt'],
  ['invoice\u202Efdp.exe', 'invoicefdp.exe'],
  ['日本語.png', 'file.png'],
  ['x...pdf', 'x.pdf'],
  ['name. ', 'name'],
  ['ﬁle①.txt', 'file1.txt'],
  ['', 'file'],
])('%j becomes %j in a key', (given, safe) => expect(safeFileName(given)).toBe(safe));

test('whatever the name, it is a short plain ASCII name without a path or a device, and stays so', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 400 }), (given) => {
      const safe = safeFileName(given);
      expect(safe).toMatch(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/);
      expect(safe).not.toMatch(/\.\.|[._-]$|^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i);
      expect(safeFileName(safe)).toBe(safe);
    }),
  );
});

test('a long name keeps its extension', () => {
  const safe = safeFileName(`${'x'.repeat(500)}.jpeg`);
  expect(safe).toHaveLength(100);
  expect(safe.endsWith('.jpeg')).toBe(true);
});

test('the name people see keeps its letters but neither its path nor characters that hide others', () => {
  expect(displayName('C:\\Bilder\\Größe 日本.png')).toBe('Größe 日本.png');
  expect(displayName('a\u200bb\u202e.txt')).toBe('ab.txt');
  expect(displayName('😀'.repeat(400))).toBe('😀'.repeat(255));
});

test('a download header is one line of ASCII, whatever the name', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (given) => {
      expect(contentDisposition('attachment', given)).toMatch(/^attachment; filename="[\w.-]+"; filename\*=UTF-8''[\w.~!%-]*$/);
    }),
  );
  expect(contentDisposition('inline', "Größe (1)'.png")).toBe(
    `inline; filename="Gro_e_1.png"; filename*=UTF-8''Gr%C3%B6%C3%9Fe%20%281%29%27.png`,
  );
});
