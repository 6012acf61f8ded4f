export const UPLOAD_STATES = ['pending', 'quarantined', 'complete', 'expired', 'rejected'] as const;
export type UploadState = (typeof UPLOAD_STATES)[number];
