export { initial } from './0001_initial.ts';
export { uploadsByState } from './0002_uploads_by_state.ts';
export { removalsWithQuota } from './0003_removals_with_quota.ts';
