import { Anchor, Stack, Text } from '@mantine/core';
import { SecretProvider } from './actions/secret-provider.tsx';
import { CrashGuard } from './feedback/crash-guard.tsx';
import { Late } from './feedback/late.tsx';
import { OverviewPage } from './overview/overview-page.tsx';
import { hashOf, type Place } from './routing/location.ts';
import { useLocation } from './routing/use-location.ts';
import { SessionGate, useSession } from './session/session-gate.tsx';
import { PageTitle } from './shell/page-title.tsx';
import { Shell } from './shell/shell.tsx';
import { later } from './later.ts';

// The first load is for the login and the overview; the grid and the forms come when they are asked for.
const ListPage = later(async () => (await import('./list/list-page.tsx')).ListPage);
const CreatePage = later(async () => (await import('./record/create-page.tsx')).CreatePage);
const ImportPage = later(async () => (await import('./record/import-page.tsx')).ImportPage);
const EditPage = later(async () => (await import('./record/edit-page.tsx')).EditPage);
const AccountPage = later(async () => (await import('./account/account-page.tsx')).AccountPage);
const SectionsPage = later(async () => (await import('./record/sections-page.tsx')).SectionsPage);
const RecordPage = later(async () => (await import('./record/record-page.tsx')).RecordPage);

export function App() {
  return (
    <SessionGate>
      <SecretProvider>
        <Shell>
          <Page />
        </Shell>
      </SecretProvider>
    </SessionGate>
  );
}

function Page() {
  const { place } = useLocation();
  return (
    <CrashGuard key={keyOf(place)}>
      <Late>
        <Screen place={place} />
      </Late>
    </CrashGuard>
  );
}

function Screen({ place }: { readonly place: Place }) {
  const { site } = useSession();
  if (place.page === 'overview') return <OverviewPage />;
  if (place.page === 'account' && site.login.account) return <AccountPage />;
  const sections = place.page === 'list' ? site.pages?.find(({ name, href }) => name === place.resource && href === undefined) : undefined;
  if (sections !== undefined) return <SectionsPage page={sections} />;
  const resource = 'resource' in place ? site.resources.find(({ name }) => name === place.resource) : undefined;
  if (resource === undefined) return <UnknownPage />;
  switch (place.page) {
    case 'list':
      return <ListPage resource={resource} />;
    case 'create':
      return <CreatePage resource={resource} />;
    case 'import':
      return <ImportPage resource={resource} />;
    case 'record':
      return <RecordPage resource={resource} id={place.id} />;
    case 'edit':
      return <EditPage resource={resource} id={place.id} />;
    default:
      return <UnknownPage />;
  }
}

/** Another place is another page: nothing typed or selected is carried over. */
function keyOf(place: Place): string {
  return JSON.stringify(place);
}

function UnknownPage() {
  return (
    <Stack gap="xs">
      <PageTitle>Page not found</PageTitle>
      <Text>
        This page does not exist, or you cannot see it. <Anchor href={hashOf({ page: 'overview' })}>Go to the overview</Anchor>
      </Text>
    </Stack>
  );
}
