import { describe, expect, test } from 'vitest';
import { ann, mounted, requestBy, sue } from '../../../test/crud/mounted.ts';
import { model, softDelete, t } from '../../db/index.ts';
import { isStaff } from '../../permissions/index.ts';
import { many, one, resource } from '../index.ts';
import type { AnyResource } from '../declare/resource.ts';
import type { CrudRequest, Scope } from './crud-request.ts';

const folders = model('folders', { id: t.uuidv7().pk(), org: t.text(20).readOnly(), title: t.text(40) });
const papers = model('papers', {
  id: t.uuidv7().pk(),
  org: t.text(20).readOnly(),
  owner_id: t.uuid().readOnly(),
  folder_id: t.ref(() => folders),
  title: t.text(40),
  ...softDelete(),
});
const folderResource = resource(folders, { tenant: 'org', relations: { papers: many(() => papers, 'folder_id') } });

/** The condition as SQL with its values, `true` for every row and `false` for none. */
function shown({ compiled }: Scope): unknown {
  if (compiled.constant !== undefined) return compiled.constant;
  const values: unknown[] = [];
  const text = compiled.append('sqlite', 't', values);
  return [text.replaceAll(/"|\bt\./g, ''), ...values];
}
const rowsOf = (declared: AnyResource, audience: string | null = null) =>
  mounted(declared, audience === null ? {} : { audience }, [folderResource]).policy.rows;
const visible = async (declared: AnyResource, request: CrudRequest) => shown(await rowsOf(declared, request.audience).visible(request));
const code = async (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'no error',
    (error: { code?: string }) => error.code,
  );

const kept = { softDelete: false } as const;

describe('tenant and owner', () => {
  test('add up, in every condition', async () => {
    const declared = resource(papers, { ...kept, tenant: 'org', owner: 'owner_id', rows: () => ({ title: { ne: 'gone' } }) });
    const [text, ...values] = (await visible(declared, requestBy(ann))) as [string, ...unknown[]];
    expect(text).toMatch(/org = \$1\)? and \(?owner_id = \$2\)? and \(?title <> \$3/);
    expect(values).toEqual(['north', ann.id, 'gone']);
  });

  test('without a tenant there is 403, without credentials 401; `unless` lets through whom it names', async () => {
    const declared = resource(papers, { ...kept, tenant: 'org', owner: { column: 'owner_id', unless: isStaff } });
    expect(await code(visible(declared, requestBy(ann, { tenant: null })))).toBe('tenant_required');
    expect(await code(visible(declared, requestBy(null)))).toBe('not_authenticated');
    expect(await visible(declared, requestBy(sue))).toEqual(['org = $1', 'north']);
  });

  test('a user who was deactivated owns nothing, and an id that the column cannot store has no rows', async () => {
    const declared = resource(papers, { ...kept, owner: 'owner_id' });
    expect(await visible(declared, requestBy({ ...ann, is_active: false }))).toBe(false);
    expect(await visible(declared, requestBy({ ...ann, id: 'not a uuid' }))).toBe(false);
  });

  test('anonymous callers see what `anonymous` says, whoever owns it', async () => {
    const declared = resource(papers, { ...kept, owner: 'owner_id', anonymous: { title: 'public' } });
    expect(await visible(declared, requestBy(null))).toEqual(['title = $1', 'public']);
    expect(await visible(declared, requestBy(ann))).toEqual(['owner_id = $1', ann.id]);
  });
});

describe('a rule', () => {
  test('is asked once per request, however many operations need it', async () => {
    let asked = 0;
    const declared = resource(papers, {
      ...kept,
      rows: () => {
        asked += 1;
        return { title: 'mine' };
      },
    });
    const [rows, request] = [rowsOf(declared), requestBy(ann)];
    await rows.visible(request);
    await rows.forWrite(request);
    expect(asked).toBe(1);
    await rows.visible(requestBy(ann));
    expect(asked).toBe(2);
  });

  test('with a name that the model does not have, or that is no condition, is an error, never every row', async () => {
    expect(await code(visible(resource(papers, { ...kept, rows: () => ({ nope: 1 }) as never }), requestBy(ann)))).toBe('invalid_rule');
    expect(await code(visible(resource(papers, { ...kept, rows: () => undefined as never }), requestBy(ann)))).toBe('invalid_rule');
    expect(await code(visible(resource(papers, { ...kept, rows: () => ({}) }), requestBy(ann)))).toBe('invalid_rule');
  });

  test('through a relation keeps the rows of its target in the tenant of the caller; whoever has none sees none there', async () => {
    const declared = resource(papers, {
      ...kept,
      relations: { folder: one(() => folders, 'folder_id') },
      rows: () => ({ folder: { is: { title: 'open' } } }),
    });
    const [text, ...values] = (await visible(declared, requestBy(ann))) as [string, ...unknown[]];
    expect(text).toContain('org = ');
    expect(values).toEqual(expect.arrayContaining(['north', 'open']));
    expect(await code(visible(declared, requestBy(ann, { tenant: null })))).toBe('tenant_required');
  });

  test('may be an object without a prototype, also where it leads through a relation', async () => {
    const where = Object.assign(Object.create(null) as object, { folder: { is: { title: 'open' } } });
    const relations = { folder: one(() => folders, 'folder_id') };
    const declared = resource(papers, { ...kept, relations, rows: () => where });
    const [, ...values] = (await visible(declared, requestBy(ann))) as [string, ...unknown[]];
    expect(values).toEqual(expect.arrayContaining(['north', 'open']));
  });

  test('that leads back to its own rows is refused: no statement can have it', async () => {
    const looping: AnyResource = resource(folders, {
      rows: () => ({ papers: { some: { title: 'x' } } }),
      relations: { papers: many(() => papers, 'folder_id') },
    });
    const back = resource(papers, {
      ...kept,
      relations: { folder: one(() => folders, 'folder_id') },
      rows: () => ({ folder: { is: { title: 'x' } } }),
    });
    const { rows } = mounted(back, {}, [looping]).policy;
    await expect(rows.visible(requestBy(ann))).rejects.toThrow(/leads back to its own rows: "paper" → "folder" → "paper"/);
  });
});

describe('soft deletion', () => {
  test('rows that are there, that were deleted, and both are three conditions of one rule', async () => {
    const rows = rowsOf(resource(papers, { owner: 'owner_id' }));
    const request = requestBy(ann);
    expect(shown(await rows.visible(request))).toEqual([expect.stringMatching(/deleted_at is null/), ann.id]);
    expect(shown(await rows.visible(request, 'deleted'))).toEqual([expect.stringMatching(/deleted_at is not null/), ann.id]);
    expect(shown(await rows.visible(request, 'any'))).toEqual(['owner_id = $1', ann.id]);
  });
});

describe('an audience', () => {
  const declared = (rows: unknown, more: object = {}) =>
    resource(papers, { ...kept, tenant: 'org', owner: 'owner_id', audiences: { staff: { rows, ...more } as never } });

  test('has its own rows in place of the owner, in the tenant unless it says otherwise, and needs a user', async () => {
    const asStaff = (user: typeof sue | null) => requestBy(user, { audience: 'staff' });
    expect(await visible(declared(true), asStaff(sue))).toEqual(['org = $1', 'north']);
    expect(await visible(declared({ title: 'x' }, { tenant: 'all' }), asStaff(sue))).toEqual(['title = $1', 'x']);
    expect(await code(visible(declared(true), asStaff(null)))).toBe('not_authenticated');
  });

  test('rows by a function see what this resource is asked for, and nothing of what another one is', async () => {
    const seen: unknown[] = [];
    const { policy } = mounted(
      declared((_caller: unknown, { filters, keys }: { filters: object; keys: unknown }) => {
        seen.push([filters, keys]);
        return { title: 'x' };
      }),
      { audience: 'staff' },
      [folderResource],
    );
    const asked = { filters: { type: 'a' }, keys: [1] };
    await policy.rows.visible(requestBy(sue, { audience: 'staff', asked: { policy, ...asked } }));
    await policy.rows.visible(requestBy(sue, { audience: 'staff', asked: { policy: {}, ...asked } }));
    await policy.rows.visible(requestBy(sue, { audience: 'staff' }));
    expect(seen).toEqual([
      [{ type: 'a' }, [1]],
      [{}, null],
      [{}, null],
    ]);
  });

  test('rows by a function that returns no condition are an error', async () => {
    expect(
      await code(
        visible(
          declared(() => undefined),
          requestBy(sue, { audience: 'staff' }),
        ),
      ),
    ).toBe('invalid_rule');
  });
});

describe('access', () => {
  const access = {
    name: 'grants',
    actionOf: (operation: string) => ({ list: 'view', retrieve: 'view', update: 'change', destroy: undefined })[operation],
    condition: (_context: unknown, action: string) => (action === 'view' ? { title: 'shared' } : { title: 'editable' }),
  } as never;

  test('is joined to the owner by OR; a write needs its own action beside it, and one without a name needs a grant', async () => {
    const rows = rowsOf(resource(papers, { ...kept, owner: 'owner_id', access }));
    expect(shown(await rows.visible(requestBy(ann)))).toEqual([
      expect.stringMatching(/owner_id = \$1\)? or \(?title = \$2/),
      ann.id,
      'shared',
    ]);
    const { allowed } = await rows.forWrite(requestBy(ann, { action: 'update' }));
    expect([allowed?.action, shown(allowed as never)]).toEqual(['change', [expect.stringMatching(/ or /), ann.id, 'editable']]);
    const removal = await rows.forWrite(requestBy(ann, { action: 'destroy' }));
    expect(shown(removal.allowed as never)).toEqual(['title = $1', 'editable']);
  });
});
