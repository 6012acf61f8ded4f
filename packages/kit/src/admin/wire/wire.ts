// The answers of the admin site's own JSON API, beside the shapes that modules declare. Routes, below the site's prefix:
//   GET    api/login                                  → AdminLogin: where to log in
//   POST   api/login                                  { login, password, code? } → AdminSession, sets the session cookie; 401
//                                                     one_time_code_required asks for `code`, 403 second_factor_required to set one up
//                                                     Only where the site shows the login form; else the login is at AdminLogin.url.
//   …      api/account/…                              the routes of AccountController, for the user's own account, where `account` is true
//   POST   api/logout                                 → 204
//   GET    api/session                                → AdminSession; 403 staff_only carries `csrf_token`, to log out with
//   GET    api/tenants                                → PortalTenantChoice; POST …/tenants/:id/choose → 204. Only in the portal
//   GET    api/state                                  → AdminSiteState, every few seconds: whether server, databases and workers work
//   GET    api/overview?range=24h                     → AdminOverviewAnswer; /export: the numbers of its charts as CSV
//   GET    api/pages/:name                            → AdminSectionsAnswer; only in the portal
//   GET    api/resources/:name                        ?search= &cursor= &limit= &sort=-created_at &filter.<name>= → AdminPage
//   POST   api/resources/:name                        { field: value, … } → AdminResult, 201
//   GET    api/resources/:name/:id                    → AdminRecord
//   PATCH  api/resources/:name/:id                    { field: value, … } → AdminResult
//   DELETE api/resources/:name/:id                    → AdminResult
//   POST   api/resources/:name/actions/:action        { ids: […], fields: { … } } → AdminResult
//   POST   api/resources/:name/actions/:action/preview  the same → AdminPreview; changes nothing
//   GET    api/lists/:name/export?format=csv          with the parameters of the list → the rows as a file
//   POST   api/lists/:name/import?dry_run=true        &mode=upsert &column.<name>=<field>, and a file as text/csv or application/x-ndjson → AdminImportResult
//   GET    api/lists/:name/news?id=                   → an event stream of `changed`, at first once: the list, or the record, is to be read again
//   GET    api/lists/:name/choices?search= | ?id=     → AdminChoices, for pickers
//   GET    api/lists/:name/filters                    → AdminSavedFilters: of the caller, and those that are shared with their role
//   POST   api/lists/:name/filters                    { name, query, shared_with? } → AdminSavedFilter, 201; DELETE …/filters/:id → 204
//   GET    api/view                                   → AdminView; POST { user, tenant?, reason } → AdminView, 201; DELETE → 204. With viewAs
// A change (POST, PATCH, DELETE of resources) takes an `idempotency-key`: sent again, it is done once; a repetition of a change that was done is
// 409 response_not_kept. PATCH takes `if-match` with `form.tag`: 412 when the record was changed meanwhile.
// Every unsafe request but the login carries `x-csrf-token`. Errors are problem+json; a 422 names the field in its location:
// ["body", "url"] of a form, ["body", "fields", "reason"] of an action.
import type { AdminOverview, AdminSection } from '../../app/admin/sections.ts';
import type { AdminPageShape, AdminRange, AdminResourceShape, AdminTone } from '../../app/admin/shapes.ts';

/** How staff log in. */
export interface AdminLogin {
  /** Whose site it is. */
  readonly site: 'admin' | 'portal';
  /** What it is called. */
  readonly title: string;
  /** The page where they do; null: the site shows the form. */
  readonly url: string | null;
  /** The site has pages for the own account. */
  readonly account: boolean;
  /** The application's page for the own account. */
  readonly account_url: string | null;
  /** Of the developers' portal. */
  readonly portal?: PortalFacts;
}

/** How the portal of this application looks, and how people get there. */
export interface PortalFacts {
  /** Nobody logs in here: people come by links. */
  readonly by_link: boolean;
  /** Origins of pages that may show it in a frame. */
  readonly origins: readonly string[];
  readonly logo: string | null;
  readonly accent: string | null;
  readonly accent_dark: string | null;
  readonly locale: string | null;
  readonly links: readonly { readonly label: string; readonly href: string }[];
}

export interface AdminSession {
  readonly user: { readonly id: string; readonly username: string; readonly role: 'read_only' | 'operator' | 'administrator' };
  /** Sent back as `x-csrf-token` by every request that changes something. */
  readonly csrf_token: string;
  readonly site: {
    readonly title: string;
    /** Of the application, as its OpenAPI document says it. */
    readonly version: string;
    /** Staff may look at the application as a user: `api/view`. */
    readonly view_as?: boolean;
    readonly login: AdminLogin;
    readonly resources: readonly AdminResourceShape[];
    /** Pages that are not lists. */
    readonly pages?: readonly AdminPageShape[];
  };
}

/** The tenants that the person may work in; none where there is nothing to choose. */
export interface PortalTenantChoice {
  /** The id of the one that the pages are about; null: none is chosen. */
  readonly current: string | null;
  readonly items: AdminChoices['items'];
}

/** A page that is not a list. */
export interface AdminSectionsAnswer {
  readonly sections: readonly AdminSection[];
}

export interface AdminOverviewAnswer {
  readonly range: AdminRange;
  /** When it was counted. */
  readonly at: string;
  readonly parts: readonly AdminOverview[];
}

/** Whether what the site needs works. That the answer came says it of the server. */
export interface AdminSiteState {
  readonly at: string;
  /** The process that answered. Absent: not for this caller. */
  readonly process?: {
    readonly started_at: string;
    /** Of the application. */
    readonly version: string;
  };
  readonly parts: readonly AdminStatePart[];
}

export interface AdminStatePart {
  readonly name: string;
  readonly tone: AdminTone;
  readonly text: string;
}

/** Records that a picker offers. */
export interface AdminChoices {
  readonly items: readonly { readonly id: string; readonly title: string }[];
}

/** A view of a list that somebody gave a name; `query` is that of the list's address. */
export interface AdminSavedFilter {
  readonly id: string;
  readonly name: string;
  readonly query: string;
  /** The least role that sees it besides its owner; null: none. */
  readonly shared_with: AdminSession['user']['role'] | null;
  /** It is the caller's own. */
  readonly own: boolean;
}

export interface AdminSavedFilters {
  readonly items: readonly AdminSavedFilter[];
  /** The caller may share views of this list. */
  readonly shares: boolean;
  /** The caller may delete what others share. */
  readonly manages: boolean;
}

/** Ids in one request of an action; the site sends larger selections in several and shows how far it is. */
export const ADMIN_ACTION_IDS_MAX = 100;

/** Stands in the built page where each answer puts its own nonce for style elements. */
export const ADMIN_STYLE_NONCE = '__STYLE_NONCE__';

/** As whom the member of staff looks at the application now, for the banner. */
export interface AdminView {
  /** Null: as nobody. */
  readonly view: {
    readonly user: { readonly id: string; readonly username: string };
    /** The id of the tenant; null: in none. */
    readonly tenant: string | null;
    /** What people call the tenant, where a list of the site knows. */
    readonly tenant_name: string | null;
    readonly reason: string;
    readonly expires_at: string;
  } | null;
}
