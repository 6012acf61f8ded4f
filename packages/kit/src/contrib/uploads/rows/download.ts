import type { Db } from '../../../db/engine/db.ts';
import { uploadErrors } from '../errors.ts';
import { uploadsOf } from './in-use.ts';
import { isRasterImage } from '../declare/media-type.ts';
import type { Upload } from '../declare/upload.ts';

export interface DownloadUrl {
  readonly url: string;
  readonly expiresAt: Date;
}

/** A short-lived address of the file. Only complete uploads have one, and only while the store holds what was verified. */
export async function downloadUrl(db: Db, upload: Upload): Promise<DownloadUrl> {
  const { store } = uploadsOf(db);
  const { state, final_key: key } = upload;
  if (state !== 'complete' || key === null) throw uploadErrors.not_ready({ extensions: { state } });
  const found = await store.head(key);
  if (found === null || found.etag !== upload.etag) throw uploadErrors.upload_changed();
  return signedDownload(db, upload);
}

/** The address alone, without asking the store whether the object is still the one that was verified. */
export async function signedDownload(
  db: Db,
  { id, final_key: key, content_type: contentType, filename: fileName }: Pick<Upload, 'id' | 'final_key' | 'content_type' | 'filename'>,
): Promise<DownloadUrl> {
  const { store, clock, downloadSeconds } = uploadsOf(db);
  if (key === null) throw uploadErrors.not_ready();
  const expiresAt = new Date(clock.now().getTime() + downloadSeconds * 1000);
  const disposition = isRasterImage(contentType) ? 'inline' : 'attachment';
  const { url } = await store.presign({ operation: 'get', id, key, contentType, fileName, disposition, expiresAt });
  return { url, expiresAt };
}
