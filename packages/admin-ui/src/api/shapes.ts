// The one door to kit's side: what the admin API answers with, shared as types so that the halves cannot drift.
export type {
  AdminChart,
  AdminFieldChange,
  AdminNotice,
  AdminOverview,
  AdminRecord,
  AdminSection,
  AdminSectionAdds,
  AdminSectionRemoves,
  AdminTile,
  AdminTimelineEntry,
} from '../../../kit/src/app/admin/sections.ts';
export type {
  AdminActionShape,
  AdminCellKind,
  AdminColumn,
  AdminField,
  AdminFileTarget,
  AdminFileFormat,
  AdminFilter,
  AdminFilterOperator,
  AdminLink,
  AdminListLink,
  AdminPage,
  AdminPageShape,
  AdminPreview,
  AdminRange,
  AdminResourceShape,
  AdminResult,
  AdminRow,
  AdminSecret,
  AdminShortcut,
  AdminState,
  AdminTone,
  AdminValue,
  AdminWords,
} from '../../../kit/src/app/admin/shapes.ts';
export type { AdminImportResult } from '../../../kit/src/app/admin/import-result.ts';
export type {
  AdminChoices,
  AdminLogin,
  AdminOverviewAnswer,
  AdminSavedFilter,
  AdminSavedFilters,
  AdminSectionsAnswer,
  AdminSession,
  AdminSiteState,
  AdminStatePart,
  AdminView,
  PortalTenantChoice,
} from '../../../kit/src/admin/wire/wire.ts';
export { ADMIN_COUNT_MAX } from '../../../kit/src/app/admin/shapes.ts';
export { adminFilterNames } from '../../../kit/src/app/admin/filter-names.ts';
export { ADMIN_ACTION_IDS_MAX } from '../../../kit/src/admin/wire/wire.ts';
