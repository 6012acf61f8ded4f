import { BOUNDED_ROWS } from '../../crud/read/bounded.ts';
import { userLink } from '../../app/admin/user-link.ts';
import { adminDone, adminEach } from '../../app/admin/each.ts';
import { isUuid } from '../../db/values/uuid.ts';
import type { AdminContext, AdminDeclaration, AdminResource } from '../../app/admin/declaration.ts';
import type { AdminOverview, AdminSection } from '../../app/admin/sections.ts';
import type { AdminState, AdminValue } from '../../app/admin/shapes.ts';
import type { Db } from '../../db/engine/db.ts';
import { countUpTo } from '../../db/rows/count-rows.ts';
import { screen } from '../../screens/screen.ts';
import { section } from '../../screens/screen-words.ts';
import { adminUploads } from './serve/admin-uploads.ts';
import { uploadRecordResource } from './serve/record-resource.ts';
import { processUploads } from './life/clean.ts';
import { removeUpload } from './life/delete.ts';
import { downloadUrl } from './rows/download.ts';
import { uploadErrors } from './errors.ts';
import { isRasterImage } from './declare/media-type.ts';
import { findUpload } from './rows/store.ts';
import type { Upload } from './declare/upload.ts';
import type { UploadState } from './declare/upload-state.ts';
import type { UploadStore } from './declare/upload-store.ts';
import { groupDigits } from '../../app/admin/group-digits.ts';

const STATES: Readonly<Record<UploadState, AdminState>> = {
  pending: { value: 'pending', tone: 'info', hint: 'Created; the file was not completed yet.' },
  quarantined: { value: 'quarantined', tone: 'warning', hint: 'Waits for the scanner.' },
  complete: { value: 'complete', tone: 'good' },
  expired: { value: 'expired', tone: 'neutral', hint: 'Not completed in time; its file is removed.' },
  rejected: { value: 'rejected', tone: 'bad', hint: 'Does not match its declaration, or infected; its file is removed.' },
};

const uploadScreen = screen(uploadRecordResource, {
  name: 'uploads',
  label: 'Uploads',
  singular: 'upload',
  group: 'Content',
  icon: 'file',
  title: 'filename',
  columns: [
    { name: 'filename', label: 'File' },
    { name: 'owner', kind: 'link' },
    'state',
    { name: 'content_type', label: 'Type', kind: 'code', secondary: true },
    { name: 'size', label: 'Bytes', secondary: false },
    { name: 'created_at', label: 'Created', sortable: true, secondary: true },
  ],
  facts: ['id', { name: 'checksum_sha256', label: 'SHA-256', kind: 'code' }, 'reason', { name: 'completed_at', label: 'Completed' }],
  state: 'state',
  tones: { state: STATES },
  cells: { size: ({ size }) => Number(size) },
  load: ownersOf,
  search: ['filename'],
  searches: 'file name',
  filters: [
    'state',
    {
      name: 'owner',
      column: 'owner_id',
      label: 'Owner',
      kind: 'reference',
      of: 'user',
      where: (id) => ({ owner_id: id }),
      isIndexed: true,
    },
    {
      name: 'tenant',
      column: 'tenant_key',
      label: 'Tenant',
      kind: 'reference',
      of: 'tenant',
      where: (id) => ({ tenant_key: { eq: id, ne: '' } }),
      isIndexed: true,
    },
  ],
  related: [
    { to: 'user', filter: 'owner' },
    { to: 'tenant', filter: 'tenant', column: 'tenant_key' },
  ],
  creation: { refused: 'Files are sent by their owners, straight to the store.' },
  removal: 'The file is removed from the store. This cannot be undone.',
  actions: [
    {
      name: 'clean_up',
      label: { one: 'Clean up', many: 'Clean up selected uploads' },
      tone: 'bad',
      on: 'selection',
      confirm:
        'Expired and rejected ones are deleted with what is left of their files, and everything else that is due is removed from the store.',
      confirmLabel: 'Clean up',
      async run(context, ids) {
        const { db, principal, requestId } = context;
        const result = await adminEach(context, ids, async (id) => {
          const upload = isUuid(id) ? await findUpload(db, id) : null;
          if (upload === null) throw uploadErrors.upload_not_found();
          if (upload.state === 'expired' || upload.state === 'rejected') await removeUpload(db, null, id, { by: principal, requestId });
        });
        await processUploads(db);
        return adminDone(result, ['upload', 'uploads'], 'cleaned up');
      },
    },
  ],
  sections: [section<Upload>(({ row, context }) => fileSections(context, row))],
});

/** Owners by name, where the app has a list of users. */
async function ownersOf(items: readonly object[], context: AdminContext): Promise<readonly { readonly owner: AdminValue }[]> {
  const owners = (items as readonly Pick<Upload, 'owner_id'>[]).map(({ owner_id }) => owner_id);
  const names = await context.titlesOf('user', owners);
  return owners.map((owner) => ({ owner: userLink(context, owner, names.get(owner)) }));
}

/** The admin site's list of uploads, who uses how much, and file fields in forms. */
export function uploadsAdmin(store: UploadStore): AdminDeclaration & { readonly resources: readonly [AdminResource] } {
  return { resources: [uploadScreen], overview, uploads: adminUploads(store) };
}

/** The file itself: images as pictures, everything else as a link. A store that cannot be reached hides neither the record nor its actions. */
async function fileSections({ db, log }: AdminContext, upload: Upload): Promise<readonly AdminSection[]> {
  if (upload.state !== 'complete') return [];
  try {
    const { url } = await downloadUrl(db, upload);
    return isRasterImage(upload.content_type)
      ? [{ kind: 'image', title: 'Preview', url, text: upload.filename }]
      : [{ kind: 'facts', title: 'File', columns: [{ name: 'url', label: 'Download', kind: 'url' }], values: { url } }];
  } catch (error) {
    log.warn({ err: error, upload: upload.id }, 'admin: the file of an upload cannot be shown');
    return [
      { kind: 'text', title: 'File', text: 'The file cannot be shown: it was changed in the store, or the store cannot be reached.' },
    ];
  }
}

const OWNERS_SHOWN = 10;
/** Uploads of a state are counted up to here. */
const COUNTED_MAX = 10_000;

function countIn(db: Db, state: UploadState): Promise<number | null> {
  return countUpTo(db, { from: 'from uploads where state = $1', parameters: [state] }, COUNTED_MAX);
}

function shown(count: number | null): number | string {
  return count ?? `${groupDigits(COUNTED_MAX)}+`;
}

interface OwnerUse {
  readonly owner_id: string;
  readonly bytes: number | bigint | string;
  readonly count: number | bigint;
}

async function overview({ db, linkTo, titlesOf }: AdminContext): Promise<AdminOverview> {
  const owners = await db.query<OwnerUse>(
    `select owner_id, cast(sum(size) as bigint) as bytes, count(*) as count
     from (select owner_id, size, state from uploads order by id desc limit ${BOUNDED_ROWS}) newest
     where state in ('pending', 'quarantined', 'complete') group by owner_id order by 2 desc, 1 limit $1`,
    [OWNERS_SHOWN],
    { mayBeLong: 'uploads by owner' },
  );
  const names = await titlesOf(
    'user',
    owners.map(({ owner_id }) => owner_id),
  );
  const [complete, pending, quarantined, waiting] = [
    await countIn(db, 'complete'),
    await countIn(db, 'pending'),
    await countIn(db, 'quarantined'),
    await countUpTo(db, { from: 'from upload_removals', parameters: [] }, COUNTED_MAX),
  ];
  const link = (state: UploadState) => ({ resource: 'uploads', filters: { state } });
  return {
    title: 'Uploads',
    tiles: [
      { label: 'Complete', value: shown(complete), unit: 'count', tone: 'neutral', link: link('complete') },
      { label: 'Pending', value: shown(pending), unit: 'count', tone: 'neutral', link: link('pending') },
      {
        label: 'In quarantine',
        value: shown(quarantined),
        unit: 'count',
        tone: quarantined === 0 ? 'neutral' : 'warning',
        link: link('quarantined'),
      },
      { label: 'Objects to remove', value: shown(waiting), unit: 'count', tone: 'neutral', hint: 'Removed by the next clean-up.' },
    ],
    charts: [],
    tables: [
      {
        kind: 'table',
        title: `Size by owner, of the newest ${groupDigits(BOUNDED_ROWS)} uploads`,
        columns: [
          { name: 'owner', label: 'Owner', kind: 'link' },
          { name: 'bytes', label: 'Bytes', kind: 'number' },
          { name: 'count', label: 'Uploads', kind: 'number' },
        ],
        rows: owners.map(({ owner_id, bytes, count }) => ({
          id: owner_id,
          title: owner_id,
          values: {
            owner: userLink({ linkTo }, owner_id, names.get(owner_id)),
            bytes: Number(bytes),
            count: Number(count),
          },
        })),
        empty: 'There are no uploads.',
        more: { resource: 'uploads', filters: {} },
      },
    ],
  };
}
