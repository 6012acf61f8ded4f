import { expect, test } from 'vitest';
import type { AdminResource, AdminUploads } from '../../app/admin/declaration.ts';
import type { AdminField } from '../../app/admin/shapes.ts';
import { FileFields } from './file-fields.ts';

const target = (endpoint: string) => ({ endpoint, contentTypes: ['*/*'], bytesMax: 10 });
const uploadsAt = (...paths: string[]): AdminUploads => ({
  table: 'uploads',
  targets: () => new Map(paths.map((path) => [path, target(path)])),
  origin: () => null,
  attach: () => Promise.resolve(),
});
const field = (name: string): AdminField => ({ name, label: name, kind: 'text', nullable: true });
const letters = (files?: Record<string, string>) =>
  ({
    name: 'letters',
    refers: { file_id: 'uploads', owner_id: 'users' },
    ...(files === undefined ? {} : { files }),
  }) as unknown as AdminResource;

test('a field that refers to uploads takes a file, for the named controller or the first; other references do not', () => {
  const fields = new FileFields(uploadsAt('/v1/a', '/v1/b'), {});
  const drawn = (files?: Record<string, string>) => fields.drawn(letters(files), [field('file_id'), field('owner_id')]);
  expect(drawn()).toEqual([{ ...field('file_id'), kind: 'file', file: target('/v1/a') }, field('owner_id')]);
  expect(drawn({ file_id: '/v1/b' })[0]?.file).toEqual(target('/v1/b'));
});

test('without a mounted controller, or without uploads, the id is typed', () => {
  for (const uploads of [uploadsAt(), undefined])
    expect(new FileFields(uploads, {}).drawn(letters(), [field('file_id')])).toEqual([field('file_id')]);
});

test('a path where no controller is mounted is a fault that names those that are', () => {
  const [fault, ...more] = new FileFields(uploadsAt('/v1/invoices'), {}).faults([letters({ file_id: '/v1/invoice' }), letters()]);
  expect(more).toEqual([]);
  expect(fault).toMatchObject({
    id: 'E011',
    message: 'admin resource "letters": files.file_id is "/v1/invoice", where no UploadController is mounted. Did you mean "/v1/invoices"?',
    hint: 'Use one of /v1/invoices.',
  });
});
