import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { allowsType, contentMatches, isRasterImage, mediaType } from './media-type.ts';

const bytes = (...given: readonly (number | string)[]) =>
  Buffer.concat(given.map((each) => (typeof each === 'string' ? Buffer.from(each, 'latin1') : Buffer.from([each]))));
const png = bytes(0x89, 'PNG\r\n\u001a\n', '\0\0\0\rIHDR');
const jpeg = bytes(0xff, 0xd8, 0xff, 0xe0, '\0\u0010JFIF\0');
const gif = bytes('GIF89a', '\u0001\0\u0001\0');
const pdf = bytes('%PDF-1.7\n', 0xe2, 0xe3);
const zip = bytes('PK', 3, 4, '\u0014\0\0\0');
const DOCX = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document';

test.each([
  [['*/*'], 'application/x-anything', true],
  [['image/*'], 'image/png', true],
  [['image/*'], 'image/svg+xml', false],
  [['image/svg+xml'], 'image/svg+xml', true],
  [['image/*'], 'imagex/png', false],
  [['application/pdf'], 'application/pdf', true],
  [['application/pdf'], 'application/pdfx', false],
])('%j takes %s: %s', (allowed, type, taken) => expect(allowsType(allowed, type)).toBe(taken));

test('media types lose parameters and case; other text is refused', () => {
  expect(mediaType('Image/PNG; charset=x')).toBe('image/png');
  for (const text of ['', 'png', 'image/', 'a/b/c', 'image/p\nng', 'text/html\r\nx: y']) expect(mediaType(text)).toBeNull();
});

test('only raster images are shown inline', () => {
  expect(['image/png', 'image/jpeg', 'image/webp'].every(isRasterImage)).toBe(true);
  expect(['image/svg+xml', 'text/html', 'application/pdf'].some(isRasterImage)).toBe(false);
});

describe('content', () => {
  test.each([
    ['image/png', png],
    ['image/jpeg', jpeg],
    ['image/jpg', jpeg],
    ['image/gif', gif],
    ['image/webp', bytes('RIFF\u0001\0\0\0WEBPVP8 ')],
    ['application/pdf', pdf],
    ['application/zip', zip],
    [DOCX, zip],
    ['application/gzip', gzipSync('x')],
    ['video/mp4', bytes('\0\0\0 ftypisom\0\0\u0002\0')],
    ['audio/wav', bytes('RIFF\u0001\0\0\0WAVEfmt ')],
    ['text/plain', bytes('Straße, caf\u00e9 \r\n\t')],
    ['text/csv', bytes('BMW,3\n')],
    ['application/json', bytes('{"a":1}')],
    ['image/svg+xml', bytes('<?xml version="1.0"?><svg xmlns="x"/>')],
    ['application/octet-stream', png],
    ['application/x-own-format', bytes('\0\u0001anything')],
    ['text/plain', Buffer.alloc(0)],
  ])('%s is what it says', (type, head) => expect(contentMatches(type, head)).toBe(true));

  test.each([
    ['a program as an image', 'image/png', bytes('MZ', 0x90, '\0')],
    ['HTML as an image', 'image/png', bytes('<!DOCTYPE html><script>')],
    ['a JPEG as a PNG', 'image/png', jpeg],
    ['a PDF as a Word document', DOCX, pdf],
    ['an image as text', 'text/plain', png],
    ['an archive as text', 'text/csv', zip],
    ['a GIF that is a script too, as a script', 'text/javascript', bytes('GIF89a=1;alert(1)//')],
    ['a PDF of text only as text', 'text/plain', bytes('%PDF-1.4\n1 0 obj\n')],
    ['HTML as SVG', 'image/svg+xml', bytes('<html><body>svg</body></html>')],
    ['text as a PDF', 'application/pdf', bytes('see %PDF-1.7')],
    ['nothing as an image', 'image/png', Buffer.alloc(0)],
    ['an unknown image', 'image/x-unheard-of', bytes('abc')],
  ])('%s is refused', (_, type, head) => expect(contentMatches(type, head)).toBe(false));
});
