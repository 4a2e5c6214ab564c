//! Answers requests for pages, at most four at a time and ten seconds each.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use tokio::net::TcpListener;

use super::door::{Door, Refused, write_entrance};
use super::frame::Asset;
use super::url::Target;
use super::{Answer, frame, pages};
use crate::mcp::{Blocking, Hub, Limited, Outcome, Pace, Permit, say, termination_signal};
use crate::model::unprintable::visible;
use crate::model::{Ctx, ErrorKind};
use crate::ops::{Ask, Common};
use crate::session::{CallCtx, Context as _, Limits, OpError, Result, Session};

/// Maximum number of requests that are answered at once.
const MAX_AT_ONCE: usize = 4;
/// Time for an answer.
const TIME: Duration = Duration::from_secs(10);
/// Time for requests in flight to end when the server shuts down.
const SHUTDOWN_TIME: Duration = Duration::from_secs(2);
/// Maximum size of a code that is sent.
const MAX_CODE_BYTES: usize = 1024;
/// Maximum length of a URL in bytes.
const MAX_URL_BYTES: usize = 16 << 10;

/// Options of the server.
#[derive(Clone, Debug)]
pub struct WebOptions {
    /// A folder of the first repository.
    pub repo: PathBuf,
    /// Folders below which other repositories are shown.
    pub roots: Vec<PathBuf>,
    /// The folder of a fleet, `None` for the usual one, and its visible groups, to show instead of the first repository.
    pub fleet: Option<(Option<PathBuf>, Vec<String>)>,
    /// The port; 0 for a free one.
    pub port: u16,
}

struct Server {
    hub: Hub,
    repositories: Repositories,
    blocking: Blocking,
    door: Door,
}

/// The repositories that have pages.
enum Repositories {
    /// Those with these names in URLs, by their folders; `None` for the first repository.
    Named(BTreeMap<String, Option<PathBuf>>),
    /// Those of the fleet, as its settings name them now.
    OfFleet,
}

impl Server {
    /// Returns the session for a page, and completes its target. Returns `None` if there is no such repository.
    fn session(&self, target: &mut Target) -> Result<Option<Arc<Session>>> {
        let (folder, revision) = match &self.repositories {
            Repositories::Named(named) => match named.get(&target.repo) {
                Some(folder) => (folder.clone(), "WORKTREE".to_owned()),
                None => return Ok(None),
            },
            Repositories::OfFleet => {
                let home = self.hub.session(None)?;
                let links = home.workspace.config.links.all();
                if target.is_about_all() {
                    let fleet = home.workspace.fleet.as_ref().context("no fleet")?;
                    let revisions = links.iter().map(|link| (link.name.clone(), fleet.revision_of(link)));
                    target.fleet = Some(Arc::new(revisions.collect()));
                    return Ok(Some(home));
                }
                match links.into_iter().find(|link| link.name == target.repo) {
                    Some(link) => (Some(link.path), link.reference.unwrap_or_else(|| "HEAD".to_owned())),
                    None => return Ok(None),
                }
            }
        };
        if target.place.revision.is_empty() && target.page != "review" {
            target.place.revision = revision;
        }
        let folder = folder.as_deref().map(|folder| folder.to_string_lossy());
        self.hub.session(folder.as_deref()).map(Some)
    }
}

/// Serves pages on this machine until the process receives a termination signal.
pub fn serve(options: &WebOptions) -> Result<()> {
    let hub = Hub::new(&options.repo, &options.roots, options.fleet.as_ref())?;
    // Fails early outside of a repository.
    if options.roots.is_empty() {
        hub.session(None)?;
    }
    let repositories = match options.fleet {
        Some(_) => Repositories::OfFleet,
        None => Repositories::Named(repositories(&hub)),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(2 * MAX_AT_ONCE)
        .thread_name("pages")
        .enable_all()
        .build()
        .context("cannot start the threads of the server")?;
    let served = runtime.block_on(run(hub, repositories, options.port));
    runtime.shutdown_background();
    served
}

async fn run(hub: Hub, repositories: Repositories, port: u16) -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .await
        .with_context(|| format!("cannot listen on port {port}"))?;
    let address = listener.local_addr().context("cannot read the bound address")?;
    let (door, code) = Door::new(address.port())?;
    let folder = tempfile::Builder::new()
        .prefix("codescout-web-")
        .tempdir()
        .context("cannot create a temporary folder")?;
    let entrance = folder.path().join("open.html");
    write_entrance(&entrance, &address.to_string(), &code)?;
    say(&format!(
        "listening at http://{address}; to get in, open file://{}",
        entrance.display()
    ));
    say(&format!("or open http://{address}/-/open and type the code {code}"));
    let server = Arc::new(Server {
        hub,
        repositories,
        blocking: Blocking::new(MAX_AT_ONCE),
        door,
    });
    let app = Router::new().fallback(answer).with_state(Arc::clone(&server));
    let app = app.into_make_service_with_connect_info::<Pace>();
    let served = axum::serve(Limited::new(listener), app).with_graceful_shutdown(termination_signal());
    let forced = async {
        termination_signal().await;
        tokio::time::sleep(SHUTDOWN_TIME).await;
    };
    let served = tokio::select! {
        served = served => served.context("the HTTP server stopped"),
        () = forced => Ok(()),
    };
    server.hub.stop();
    served
}

/// Names the repositories after their folders.
fn repositories(hub: &Hub) -> BTreeMap<String, Option<PathBuf>> {
    let name = |folder: &Path| {
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        name.filter(|name| name != "-")
            .unwrap_or_else(|| "repository".to_owned())
    };
    let mut named = BTreeMap::new();
    let mut add = |folder: &Path, value: Option<PathBuf>| {
        let name = name(folder);
        let names = std::iter::once(name.clone()).chain((2..).map(|n| format!("{name}-{n}")));
        if let Some(free) = names.into_iter().find(|name| !named.contains_key(name)) {
            named.insert(free, value);
        }
    };
    let home = hub
        .session(None)
        .ok()
        .map(|session| session.workspace.repository.place().to_owned());
    if let Some(home) = &home {
        add(home, None);
    }
    let mut below = hub.below_roots(&AtomicBool::new(false)).folders;
    below.dedup();
    for folder in below {
        if Some(&folder) != home.as_ref() {
            add(&folder, Some(folder.clone()));
        }
    }
    named
}

async fn answer(ConnectInfo(pace): ConnectInfo<Pace>, State(server): State<Arc<Server>>, request: Request) -> Response {
    let began = Instant::now();
    let method = request.method().clone();
    let response = secured(respond(server, &pace, request).await);
    pace.rests();
    tracing::info!(%method, status = response.status().as_u16(), took_ms = began.elapsed().as_millis() as u64, "request");
    response
}

async fn respond(server: Arc<Server>, pace: &Pace, request: Request) -> Response {
    let (method, headers, uri) = (
        request.method().clone(),
        request.headers().clone(),
        request.uri().clone(),
    );
    // A request for a proxy names its host in the line of the request, too.
    if uri.authority().is_some_and(|host| !server.door.is_own(host.as_str())) {
        return refusal(Refused::Host, "/");
    }
    let asked = uri.path_and_query().map_or("/", |asked| asked.as_str());
    if let Some(asset) = Asset::at(uri.path()).filter(|_| server.door.check_host(&headers).is_ok()) {
        let headers = [
            (header::CONTENT_TYPE, asset.kind),
            (header::CACHE_CONTROL, "private, max-age=31536000, immutable"),
        ];
        return (StatusCode::OK, headers, asset.text).into_response();
    }
    if uri.path() == "/-/open" && server.door.check_host(&headers).is_ok() {
        return entrance(&server, &method, request).await;
    }
    match server.door.check(&method, &headers) {
        Ok(()) if pace.answers() => {}
        Ok(()) => return error(StatusCode::SERVICE_UNAVAILABLE, "Too many connections", &back()),
        Err(refused) => return refusal(refused, asked),
    }
    if asked.len() > MAX_URL_BYTES {
        return error(StatusCode::URI_TOO_LONG, "The address is too long", &html! {});
    }
    let Some(mut target) = Target::parse(uri.path(), uri.query()) else {
        return error(StatusCode::NOT_FOUND, "There is no such page", &back());
    };
    if matches!(server.repositories, Repositories::OfFleet) {
        target.fleet = Some(Arc::default());
    }
    match (&server.repositories, target.page.as_str()) {
        _ if !target.is_about_all() => {}
        (_, "help") => return html_of(super::overview::help_page()),
        (Repositories::OfFleet, _) => {}
        (Repositories::Named(named), "") => return front(named),
        _ => return error(StatusCode::NOT_FOUND, "There is no such page", &back()),
    }
    of_repository(server, target, &headers).await
}

/// Answers a request for a page of a repository, or about all repositories of a fleet.
async fn of_repository(server: Arc<Server>, mut target: Target, headers: &HeaderMap) -> Response {
    let (blocking, mut shared) = (server.blocking.clone(), target.clone());
    let work = move |interrupt: &AtomicBool, permit: &Permit| {
        let Some(session) = server.session(&mut shared)? else {
            return Ok(None);
        };
        let pause = |wait: &mut dyn FnMut()| permit.pause(wait);
        let ask = Ask {
            session: &session,
            call: CallCtx {
                ctx: Ctx::silent(interrupt),
                began: Instant::now(),
                limits: Some(Limits {
                    pause: &pause,
                    waiting: &|_| {},
                }),
            },
            opens: &server.hub,
            common: Common {
                reference: if shared.page == "review" || shared.is_about_all() {
                    "WORKTREE".to_owned()
                } else {
                    shared.place.revision.clone()
                },
                question: format!("{shared:?}"),
                ..Common::default()
            },
        };
        let answer = if shared.is_about_all() {
            pages::answer_of_fleet(&ask, &shared)
        } else {
            pages::answer(&ask, &shared)
        };
        answer.map(Some)
    };
    match blocking.run(std::future::pending(), TIME, work).await {
        Outcome::Ended(Ok(Some(answer))) => sent(answer, headers),
        Outcome::Ended(Ok(None)) => error(StatusCode::NOT_FOUND, "There is no such repository", &back()),
        Outcome::Ended(Err(problem)) => {
            if target.place.revision.is_empty() {
                let usual = if target.fleet.is_some() { "HEAD" } else { "WORKTREE" };
                target.place.revision = usual.to_owned();
            }
            failed(&target, &problem)
        }
        Outcome::TooLong | Outcome::Cancelled => error(
            StatusCode::SERVICE_UNAVAILABLE,
            "This takes too long",
            &html! { p { "The page was not ready in time. Reload it, or ask for less." } },
        ),
        Outcome::Panicked(what) => error(
            StatusCode::INTERNAL_SERVER_ERROR,
            "codescout has a bug",
            &html! { p { (visible(&what)) } },
        ),
    }
}

fn sent(answer: Answer, headers: &HeaderMap) -> Response {
    let tag = format!("\"{}\"", &blake3::hash(&answer.bytes).to_hex()[..32]);
    let is_known = headers
        .get(header::IF_NONE_MATCH)
        .is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let mut response = if is_known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let mut response = (StatusCode::OK, Body::from(answer.bytes)).into_response();
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, HeaderValue::from_static(answer.kind));
        if answer.is_raw {
            response.headers_mut().insert(
                header::CONTENT_SECURITY_POLICY,
                HeaderValue::from_static("sandbox; default-src 'none'"),
            );
        }
        response
    };
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

/// Says what is wrong, with the next steps.
fn failed(target: &Target, problem: &OpError) -> Response {
    let steps = html! {
        @if let Some(hint) = &problem.hint.shell { p { (visible(hint)) } }
        ul {
            @if target.is_about_all() { li { a href="/" { "all repositories" } } }
            @else { (others_of(target)) }
        }
    };
    error(status_of(problem), &problem.to_string(), &steps)
}

/// Returns pages about a repository that may show what another one does not.
fn others_of(target: &Target) -> Markup {
    let place = &target.place;
    html! {
        @if !place.path.is_empty() {
            @let history = match target.parameter("name") {
                Some(name) => target.with_name("history", &place.path, name),
                None => target.link("history", &place.revision, &place.path),
            };
            li { a href=(history) { "history" } }
        }
        li { a href=(target.link("tree", &place.revision, "")) { "all files" } }
        @if target.fleet.is_none() { li { a href=(target.link("tree", "WORKTREE", "")) { "the files on disk" } } }
    }
}

fn status_of(problem: &OpError) -> StatusCode {
    match problem.kind {
        ErrorKind::Interrupted => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::Damaged | ErrorKind::System(_) => StatusCode::INTERNAL_SERVER_ERROR,
        ErrorKind::NotFound | ErrorKind::ObjectMissing => StatusCode::NOT_FOUND,
        _ if problem.misspelt.is_some() => StatusCode::NOT_FOUND,
        _ => StatusCode::BAD_REQUEST,
    }
}

fn error(status: StatusCode, title: &str, body: &Markup) -> Response {
    (
        status,
        [(header::CONTENT_TYPE, "text/html; charset=utf-8")],
        frame::plain_page(title, body),
    )
        .into_response()
}

fn back() -> Markup {
    html! { p { a href="/" { "Begin here" } } }
}

fn front(named: &BTreeMap<String, Option<PathBuf>>) -> Response {
    let link = |name: &str| {
        let target = Target {
            repo: name.to_owned(),
            ..Target::default()
        };
        target.link("tree", "WORKTREE", "")
    };
    if let [name] = named.keys().collect::<Vec<_>>().as_slice()
        && let Ok(place) = HeaderValue::from_str(&link(name))
    {
        return (StatusCode::SEE_OTHER, [(header::LOCATION, place)]).into_response();
    }
    let body = html! { ul { @for name in named.keys() { li { a href=(link(name)) { (visible(name)) } } } } };
    html_of(frame::plain_page("Repositories", &body))
}

fn html_of(page: String) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
    (StatusCode::OK, kind, page).into_response()
}

fn refusal(refused: Refused, asked: &str) -> Response {
    match refused {
        Refused::Host => error(StatusCode::FORBIDDEN, "This is not the name of the server", &html! {}),
        Refused::Method => error(StatusCode::METHOD_NOT_ALLOWED, "Pages can only be read", &html! {}),
        Refused::OtherSite => error(StatusCode::FORBIDDEN, "Another site asked for this", &html! {}),
        // The browser sends the cookie only for links on own pages.
        Refused::FollowedLink => {
            let own = if asked.starts_with('/') && !asked.starts_with("//") {
                asked
            } else {
                "/"
            };
            error(
                StatusCode::OK,
                "A link from elsewhere",
                &html! { p { a href=(own) { "Open the page" } } },
            )
        }
        Refused::Unknown => {
            let how = html! {
                p { "Open the file that " code { "codescout web" } " names, or type the code that it prints." }
                (code_form())
            };
            error(StatusCode::FORBIDDEN, "Who is there?", &how)
        }
    }
}

fn code_form() -> Markup {
    html! {
        form method="post" action="/-/open" {
            label { "Code " input name="code" autocomplete="off" autofocus; }
            " " button { "Open" }
        }
    }
}

/// Shows the form for the code, or exchanges the code for a cookie.
async fn entrance(server: &Server, method: &Method, request: Request) -> Response {
    if *method != Method::POST {
        return error(StatusCode::OK, "Who is there?", &code_form());
    }
    let body = tokio::time::timeout(TIME, to_bytes(request.into_body(), MAX_CODE_BYTES)).await;
    let body = body.ok().and_then(Result::ok).unwrap_or_default();
    let body = String::from_utf8_lossy(&body).into_owned();
    let sent = Target::parse("/", Some(&body));
    let code = sent
        .as_ref()
        .and_then(|sent| sent.parameter("code"))
        .unwrap_or_default();
    let Some(cookie) = server.door.enter(code) else {
        return error(
            StatusCode::FORBIDDEN,
            "This code is wrong or was used before",
            &html! { p { "Start " code { "codescout web" } " again for another one." } },
        );
    };
    // A redirect would count as a request of the page with the form, which gets no cookie.
    let mut response = error(StatusCode::OK, "Welcome", &html! { p { a href="/" { "Begin here" } } });
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    response
        .headers_mut()
        .insert(header::REFRESH, HeaderValue::from_static("0; url=/"));
    response
}

/// Adds the headers that every answer has.
fn secured(mut response: Response) -> Response {
    const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
    let headers = response.headers_mut();
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static(POLICY));
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("private, no-store"));
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("x-frame-options", "DENY"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
