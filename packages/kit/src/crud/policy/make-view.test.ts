import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ann, mounted, requestBy, sue } from '../../../test/crud/mounted.ts';
import { model, t } from '../../db/index.ts';
import { isOwner, isStaff } from '../../permissions/index.ts';
import { many, one, resource, visibleTo } from '../index.ts';
import type { AnyResource } from '../declare/resource.ts';
import { viewOfEveryone, widestView } from './make-view.ts';
import type { View } from './view.ts';

const folders = model('folders', { id: t.uuidv7().pk(), title: t.text(40), secret: t.text(40) });
const papers = model('papers', {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  folder_id: t.ref(() => folders).nullable(),
  title: t.text(40),
  digest: t.text(64).sensitive(),
  code: t.text(40).nullable(),
  note: t.text(40).nullable(),
  margin: t.int().nullable(),
  price: t.int().nullable(),
});
const folderResource = resource(folders, {
  unscoped: true,
  fields: { secret: visibleTo(isStaff) },
  relations: { papers: many(() => papers, 'folder_id') },
});
const value = () => 'x';
const response = z.string();
const declared: AnyResource = resource(papers, {
  unscoped: true,
  hidden: ['code'],
  relations: { folder: one(() => folders, 'folder_id') },
  fields: { margin: visibleTo(isStaff), note: visibleTo(isOwner()), price: visibleTo(isStaff, { hidden: 'null' }) },
  computed: {
    plain: { requires: ['title'], response, value },
    of_hidden: { requires: ['code'], response, value },
    of_margin: { requires: ['margin'], response, value },
    of_note: { requires: ['note'], response, value },
    of_secret: { requires: ['folder.secret'], response, value },
  },
});
const viewOf = (user: typeof ann, options: object = {}): Promise<View> =>
  mounted(declared, { expand: ['folder'], ...options }, [folderResource]).view(requestBy(user));
const names = (view: View) => [...view.fields.keys()];

describe('what a caller may know', () => {
  test('is every column but hidden and sensitive ones, and those that no rule opens to it', async () => {
    expect(names(await viewOf(ann))).toEqual(['id', 'owner_id', 'folder_id', 'title', 'note', 'price', 'plain', 'of_hidden', 'of_note']);
    expect(names(await viewOf(sue))).toEqual([
      'id',
      'owner_id',
      'folder_id',
      'title',
      'note',
      'margin',
      'price',
      'plain',
      'of_hidden',
      'of_margin',
      'of_note',
      'of_secret',
    ]);
  });

  test('a hidden name, an unknown one and the name of a prototype are the same for every use', async () => {
    const view = await viewOf(ann);
    for (const use of ['show', 'filter', 'order', 'group', 'measure'] as const)
      for (const name of ['margin', 'digest', 'code', 'nope', '__proto__', 'constructor', 'folder.secret', 'folder.nope', 'nope.title'])
        expect([use, name, view.find(name, use)]).toEqual([use, name, undefined]);
  });

  test('what is decided on each row, or shown as null, is shown and never compared: an order or a filter would tell its value', async () => {
    const view = await viewOf(ann);
    expect([view.knows('note'), view.knows('price'), view.knows('title')]).toEqual(['row', 'null', 'always']);
    for (const use of ['filter', 'order', 'group', 'measure'] as const)
      expect([view.find('note', use), view.find('price', use), view.find('title', use)?.field.name]).toEqual([
        undefined,
        undefined,
        'title',
      ]);
    expect((await viewOf(sue)).find('price', 'order')?.field.name).toBe('price');
  });

  test('a computed field is there for those who see all it requires; a rule about the row goes along with it', async () => {
    const view = await viewOf(ann);
    const ofNote = view.computedFields().find(({ name }) => name === 'of_note');
    expect(ofNote?.rowRules.map(({ name }) => name)).toEqual([expect.stringContaining('isOwner')]);
    // Of a related row a rule cannot be asked: the field is hidden.
    expect(view.fields.has('of_secret')).toBe(false);
  });

  test('a controller narrows what is shown, and the key stays; what it leaves out may still be compared', async () => {
    const view = await viewOf(sue, { output: ['title'] });
    expect(names(view)).toEqual(['id', 'title']);
    expect([view.find('margin', 'show'), view.find('margin', 'order')?.field.name]).toEqual([undefined, 'margin']);
  });
});

describe('relations', () => {
  test('are followed to the view that the caller has there', async () => {
    const titles = async (user: typeof ann) => names((await viewOf(user)).edge('folder')!.view);
    expect(await titles(ann)).toEqual(['id', 'title']);
    expect(await titles(sue)).toEqual(['id', 'title', 'secret']);
  });

  test('through a column that the caller does not see are as unknown as the column, at both ends', async () => {
    const closed = resource(papers, {
      unscoped: true,
      fields: { folder_id: visibleTo(isStaff) },
      relations: { folder: one(() => folders, 'folder_id') },
    });
    const from = (user: typeof ann) => mounted(closed, { expand: ['folder'] }, [folderResource]).view(requestBy(user));
    expect([(await from(ann)).edge('folder'), (await from(sue)).edge('folder')?.edge.name]).toEqual([undefined, 'folder']);
    const to = (user: typeof ann) => mounted(folderResource, { expand: ['papers'] }, [closed]).view(requestBy(user));
    expect([(await to(ann)).edge('papers'), (await to(sue)).edge('papers')?.edge.name]).toEqual([undefined, 'papers']);
  });

  test('that no declared path leads to cannot be followed: nobody asked what the caller may see there', async () => {
    expect(
      (
        await mounted(resource(papers, { unscoped: true, relations: { folder: one(() => folders, 'folder_id') } }), {}, [
          folderResource,
        ]).view(requestBy(sue))
      ).edge('folder'),
    ).toBeUndefined();
  });
});

describe('views are shared', () => {
  test('by callers to whom all rules say the same, and by no others', async () => {
    const of = mounted(declared, { expand: ['folder'] }, [folderResource]);
    const bob = { ...ann, id: '00000000-0000-7000-8000-0000000000b2' };
    const [first, second, staff] = [await of.view(requestBy(ann)), await of.view(requestBy(bob)), await of.view(requestBy(sue))];
    expect(second).toBe(first);
    expect(staff).not.toBe(first);
    expect(staff.mask).not.toBe(first.mask);
  });

  test('everyone sees the columns without a rule; the document has those of all callers', () => {
    const { policy } = mounted(declared, { expand: ['folder'] }, [folderResource]);
    expect(names(viewOfEveryone(policy))).toEqual(['id', 'owner_id', 'folder_id', 'title', 'price', 'plain', 'of_hidden']);
    expect(viewOfEveryone(policy).knows('price')).toBe('null');
    expect(names(widestView(policy))).toContain('margin');
    expect(names(widestView(policy))).not.toContain('digest');
  });
});
