//! One attempt of a trial: it does what `spotsweep_attempt::Machine` decides, one action at a time.

use std::pin::pin;
use std::sync::Arc;

use spotsweep_attempt::{Action, Cause, Event, Exit, Machine};
use spotsweep_protocol::cause::chain;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use crate::claim::{Claims, Handover};
use crate::clients::Clients;
use crate::config::Config;
use crate::descendants;
use crate::exit::Failure;
use crate::log::say;
use crate::notices::Notices;
use crate::prepare::{Ready, prepare};
use crate::signals::Signals;
use crate::stop::Order;
use crate::trained::Trained;
use crate::workspace::Workspace;

/// Runs the trial and returns the job's exit code. It is the command's own, unless the runner itself fails.
pub(crate) async fn run(config: &Config, command: &[String]) -> Result<u8, Failure> {
    let signals = Signals::catch().map_err(|source| Failure::System("catch signals", source))?;
    descendants::adopt().map_err(|source| Failure::System("adopt orphans", source))?;
    let clients = Clients::connect().await?;
    let claims = Claims::new(clients.lambda.clone(), config);
    let claims = Arc::new(claims.map_err(|source| Failure::System("draw a secret", source))?);
    let notices = Notices::watch(clients.imds.clone(), Arc::clone(&claims), config.notice_every).await;
    let (events, inside) = mpsc::unbounded_channel();
    let (orders, ordered) = watch::channel(None);
    let began = Instant::from_std(config.started);
    let mut outside = Outside { machine: Machine::new(config.terms), began, signals, notices, inside, orders };
    let mut attempt = Attempt::new((config, command), (&clients, claims), events, ordered);
    let mut action = outside.begin();
    loop {
        action = match action {
            Action::Exit(exit) => return attempt.exit(exit),
            action => attempt.act(action, &mut outside).await,
        };
    }
}

/// The events from outside of the current action, and the machine that decides what follows.
pub(crate) struct Outside {
    machine: Machine,
    began: Instant,
    signals: Signals,
    notices: Notices,
    /// Events that an action sends before its end.
    inside: mpsc::UnboundedReceiver<Event>,
    /// Tells the supervisor of the command how to stop it.
    orders: watch::Sender<Option<Order>>,
}

impl Outside {
    fn begin(&mut self) -> Action {
        let left = self.notices.known().map(|notice| self.began.elapsed() + notice.left());
        self.machine.begin(left)
    }

    /// Runs `doing` until the machine decides on another action: because it is done, because its time is over, or
    /// because of another event. `late` is logged when its time is over.
    async fn until_next(&mut self, late: &str, doing: impl Future<Output = Event>) -> Action {
        let mut doing = pin!(doing);
        loop {
            let until = self.machine.until().map(|until| self.began + until);
            let time_over = async {
                match until {
                    Some(until) => sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            let event = tokio::select! {
                event = &mut doing => event,
                signal = self.signals.next() => Event::Signalled(signal),
                notice = self.notices.interruption() => {
                    Event::Noticed { left: notice.left(), why: format!("EC2 takes this instance at {}", notice.at) }
                }
                Some(event) = self.inside.recv() => event,
                () = time_over => {
                    say(late);
                    Event::TimeOver
                }
            };
            match self.machine.on(event, self.began.elapsed()) {
                Some(Action::Stop(stop)) => self.order(Order { stop, ends: None }),
                Some(Action::Shorten(grace)) => {
                    let stop = self.machine.stop().cloned();
                    stop.into_iter().for_each(|stop| self.order(Order { stop, ends: Some(Instant::now() + grace) }));
                }
                Some(action) => return action,
                None => {}
            }
        }
    }

    /// Sending fails only if the command has just ended.
    fn order(&self, order: Order) {
        let earlier = self.orders.borrow().as_ref().and_then(|earlier: &Order| earlier.ends);
        let ends = earlier.into_iter().chain(order.ends).min();
        let _ = self.orders.send(Some(Order { ends, ..order }));
    }
}

/// The state of the whole attempt.
pub(crate) struct Attempt<'a> {
    pub(crate) config: &'a Config,
    command: &'a [String],
    clients: &'a Clients,
    pub(crate) claims: Arc<Claims>,
    pub(crate) events: mpsc::UnboundedSender<Event>,
    pub(crate) orders: watch::Receiver<Option<Order>>,
    /// Present until the command starts.
    pub(crate) ready: Option<Ready>,
    /// Present while the workspace is mounted.
    pub(crate) workspace: Option<Workspace>,
    /// Present after the command has ended.
    pub(crate) trained: Option<Trained>,
    pub(crate) left: Handover,
    /// Why the runner cannot go on, or why the next attempt has to continue.
    pub(crate) failure: Option<Failure>,
    /// Why outputs of the trial are not uploaded.
    pub(crate) not_uploaded: Option<Failure>,
    /// The last reason why the report of the end had to wait.
    pub(crate) waits_for: String,
}

impl<'a> Attempt<'a> {
    fn new(
        (config, command): (&'a Config, &'a [String]),
        (clients, claims): (&'a Clients, Arc<Claims>),
        events: mpsc::UnboundedSender<Event>,
        orders: watch::Receiver<Option<Order>>,
    ) -> Self {
        let (ready, workspace, trained, failure, not_uploaded) = (None, None, None, None, None);
        let left = Handover::default();
        Self {
            config,
            command,
            clients,
            claims,
            events,
            orders,
            ready,
            workspace,
            trained,
            left,
            failure,
            not_uploaded,
            waits_for: String::new(),
        }
    }

    /// Runs `action` until the machine decides on another one.
    async fn act(&mut self, action: Action, outside: &mut Outside) -> Action {
        let stop = outside.machine.stop().cloned();
        let began = outside.began;
        match action {
            Action::Prepare => outside.until_next("", self.prepare()).await,
            Action::Train => outside.until_next("", self.train(began)).await,
            Action::Judge => {
                let judged = self.judge();
                outside.until_next("", async { judged }).await
            }
            Action::Collect { has_succeeded } => {
                if let Some(Cause::StoppedEarly(why)) = stop.map(|stop| stop.cause) {
                    say(&why);
                }
                outside.until_next("no time left to upload what the command leaves", self.collect(has_succeeded)).await
            }
            Action::Seal { reading_until, is_left } => {
                let sealing = self.seal(began + reading_until, is_left);
                outside.until_next("no time left to close the workspace in order", sealing).await
            }
            Action::Unmount => outside.until_next("no time left to close the workspace in order", self.unmount()).await,
            Action::Release => {
                let releasing = self.release(stop.as_ref());
                outside.until_next("the release could not be reported in time", releasing).await
            }
            Action::End { code, after } => {
                let ending = self.end(code, after, stop.as_ref());
                outside.until_next("the end could not be reported in time", ending).await
            }
            Action::AwaitEnd => {
                say("the instance is about to be taken: nothing starts here, the attempt ends with the instance");
                outside.until_next("the instance is still there", std::future::pending()).await
            }
            // These do not come here: two are orders to the command, and one is the end.
            Action::Stop(_) | Action::Shorten(_) | Action::Exit(_) => action,
        }
    }

    async fn prepare(&mut self) -> Event {
        let (claims, events) = (&self.claims, &self.events);
        match prepare(self.config, self.command, self.clients, (claims, events), &mut self.workspace).await {
            Ok(ready) => {
                self.ready = Some(ready);
                Event::Prepared { has_workspace: self.workspace.is_some() }
            }
            Err(failure) => self.fails(failure),
        }
    }

    /// Keeps the failure with which the attempt ends.
    pub(crate) fn fails(&mut self, failure: Failure) -> Event {
        let event = match &failure {
            Failure::Setup { .. } | Failure::Code(_) | Failure::Secrets(_) | Failure::Data(_) => {
                Event::SetupFailed { code: failure.code() }
            }
            failure => Event::Failed { is_left: matches!(failure, Failure::Interrupted(_)) },
        };
        self.failure = Some(failure);
        event
    }

    fn exit(self, exit: Exit) -> Result<u8, Failure> {
        let kept = || Failure::Interrupted("the attempt ends for no reason that is known".to_owned());
        match exit {
            Exit::Code(code) => match self.not_uploaded.or(self.failure) {
                Some(failure) if failure.code() == code => Err(failure),
                Some(failure) => {
                    say(&chain(&failure));
                    Ok(code)
                }
                None => Ok(code),
            },
            Exit::Left(Some(cause)) => Err(cause.into()),
            Exit::Left(None) | Exit::Failed => Err(self.failure.unwrap_or_else(kept)),
            Exit::Refused(reason) => Err(Failure::Refused(reason)),
            Exit::Unfit(reason) => Err(Failure::Unfit(reason)),
        }
    }
}
